package indexer

import (
	"bytes"
	"encoding/binary"
	"time"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// file is a row of the table files. It contains the path and data derived from the path, the stamp, the content's
// hash, and the facts that derive needs to build deliveries without rereading the file.
type file struct {
	path   string
	fol    int64 // number of the file's folder; 0 until the folder is stored
	kind   format.Kind
	agent  string
	id     string    // id of the message, copy or mark; "" for other files and for invalid paths
	stamp  int64     // the file's state, as returned by stampOf
	hash   []byte    // digest of the content; nil if the index ignores the content
	valid  bool      // whether the index uses the file
	at     time.Time // the time in a mark; zero if the file contains no time
	fact   string    // in an inbox: to, cc or bcc; in an outbox: the bcc names, separated by spaces
	reason string    // a description of the problem, or "" if there is no problem; "known" if the file was loaded from a row with a problem
	line   int
}

// stampOf returns a hash of a file's state, which consists of its size, times and inode. If the index ignores the
// file's content, the hash omits the ctime, because a mode change would change the ctime. If a stamp is odd, an equal
// stamp proves that the content has not changed. If a stamp is even, the next observation rereads the file.
func stampOf(k format.Kind, st tree.FileStat, proven bool) int64 {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[0:], uint64(st.Size))
	binary.LittleEndian.PutUint64(b[8:], uint64(st.MTime))
	binary.LittleEndian.PutUint64(b[16:], st.Inode)
	if hasContent(k) {
		binary.LittleEndian.PutUint64(b[24:], uint64(st.CTime))
	}
	stamp := int64(xxhash.Sum64(b[:])) &^ 1
	if proven || !hasContent(k) {
		stamp |= 1
	}
	return stamp
}

// read records the state of the file. The argument at is a time before the file was read, in Unix nanoseconds.
func (f *file) read(st tree.FileStat, at int64) {
	f.stamp = stampOf(f.kind, st, st.CTime < at-int64(tree.Racy))
}

// level reports whether st proves that the file's content has not changed since it was read.
func (f *file) level(st tree.FileStat) bool { return f.stamp == stampOf(f.kind, st, true) }

// says reports whether f and g, two observations of the same path, are equivalent for the index.
func (f *file) says(g *file) bool {
	if f.valid != g.valid || (f.reason != "") != (g.reason != "") {
		return false
	}
	if f.hash != nil || g.hash != nil {
		return bytes.Equal(f.hash, g.hash)
	}
	return f.stamp|1 == g.stamp|1 // ignores the bit that says whether the stamp proves that the content is unchanged
}

// hasContent reports whether the index uses the content of files of kind k.
func hasContent(k format.Kind) bool {
	switch k {
	case format.KindIgnored, format.KindOther, format.KindDraft, format.KindAttachment:
		return false
	}
	return true
}

// isMessage reports whether k is the kind of a message file, in any of its three roles.
func isMessage(k format.Kind) bool {
	return k == format.KindCanonical || k == format.KindInbox || k == format.KindOutbox
}

// locate is like format.Locate, but rejects names that JSON cannot represent.
func locate(p string) format.Place {
	pl := format.Locate(p)
	if pl.Bad == "" && pl.Kind != format.KindIgnored && !utf8.ValidString(p) {
		pl.Bad = "the path is not valid UTF-8"
	}
	if pl.Bad != "" || !(isMessage(pl.Kind) || pl.Kind.Mark()) {
		pl.ID = ""
	}
	return pl
}

// makesAgent returns the agent whose existence this file implies, or "".
func (f *file) makesAgent() string {
	switch f.kind {
	case format.KindProfile, format.KindStatus, format.KindHold, format.KindInbox, format.KindRead, format.KindAck,
		format.KindArchived, format.KindLater, format.KindOutbox, format.KindDraft:
		if format.ValidName(f.agent) {
			return f.agent
		}
	}
	return ""
}

// filePath is SQL for the path of file f in folder o.
const filePath = "CASE o.path WHEN '.' THEN f.name ELSE o.path || '/' || f.name END"

// fileColumns are the columns that scanFile reads.
const fileColumns = "SELECT f.fol, " + filePath + ", f.kind, f.stamp, f.hash, f.valid, f.bad, f.at, f.fact FROM "

func scanFile(scan scanner) (*file, error) {
	f := &file{}
	var bad bool
	err := scan(&f.fol, &f.path, &f.kind, &f.stamp, &f.hash, &f.valid, &bad, instant{&f.at}, &f.fact)
	pl := locate(f.path)
	f.agent, f.id = pl.Agent, pl.ID
	if bad {
		f.reason = "known"
	}
	return f, err
}
