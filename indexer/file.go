package indexer

import (
	"bytes"
	"database/sql"
	"time"
	"unicode/utf8"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// file is a row of files: a path, what the path says, the stat and hash of the bytes that were
// read, and the few facts from which derive makes deliveries without reading the file again.
type file struct {
	path   string
	fol    int64 // the number of its folder; 0 until that is stored
	kind   format.Kind
	agent  string
	id     string // of messages, copies and marks; "" elsewhere and where the place is bad
	stat   tree.FileStat
	readAt int64  // nanoseconds, taken before the read; 0: the next look reads it again
	hash   []byte // SHA-256 of the content; nil where none is kept
	valid  bool   // it counts
	at     int64  // the time in a mark, microseconds; noTime
	fact   string // inbox: to, cc or bcc; outbox: the bcc names, blank separated
	reason string // why it is a problem, "" when it is none; a loaded row only says whether
	line   int
}

// noTime is a time that is not there; it is NULL in the tables.
const noTime = -1 << 63

// level reports whether st proves that the file still has the bytes that were read.
func (f *file) level(st tree.FileStat) bool {
	return f.stat.Size == st.Size && f.stat.MTime == st.MTime && f.stat.CTime == st.CTime && f.stat.Inode == st.Inode &&
		(!hasContent(f.kind) || f.readAt > 0 && st.CTime < f.readAt-int64(tree.Racy))
}

// says reports whether two readings of one path mean the same.
func (f *file) says(g *file) bool {
	if f.valid != g.valid || (f.reason != "") != (g.reason != "") {
		return false
	}
	if f.hash != nil || g.hash != nil {
		return bytes.Equal(f.hash, g.hash)
	}
	return f.stat.Size == g.stat.Size && f.stat.MTime == g.stat.MTime && f.stat.Inode == g.stat.Inode
}

// hasContent reports whether the bytes of a file of that kind mean something.
func hasContent(k format.Kind) bool {
	switch k {
	case format.KindIgnored, format.KindOther, format.KindDraft, format.KindAttachment:
		return false
	}
	return true
}

// isMessage reports whether k is a message file in one of its three roles.
func isMessage(k format.Kind) bool {
	return k == format.KindCanonical || k == format.KindInbox || k == format.KindOutbox
}

// locate is maildir.Locate, and refuses names that no JSON could carry.
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

// makesAgent names the agent that exists because of this file; "" when none does.
func (f *file) makesAgent() string {
	switch f.kind {
	case format.KindProfile, format.KindStatus, format.KindInbox, format.KindRead, format.KindAck, format.KindArchived,
		format.KindOutbox, format.KindDraft:
		if format.ValidName(f.agent) {
			return f.agent
		}
	}
	return ""
}

// filePath is SQL for the path of a file f in its folder o.
const filePath = "CASE o.path WHEN '.' THEN f.name ELSE o.path || '/' || f.name END"

// fileColumns is what scanFile reads.
const fileColumns = "SELECT f.fol, " + filePath + ", f.kind, f.size, f.mtime, f.ctime, f.inode, f.read_at, f.hash, f.valid, f.bad, " +
	"f.at, f.fact FROM "

func scanFile(scan func(...any) error) (*file, error) {
	f := &file{}
	var at sql.NullInt64
	var inode int64
	var bad bool
	err := scan(&f.fol, &f.path, &f.kind, &f.stat.Size, &f.stat.MTime, &f.stat.CTime, &inode, &f.readAt, &f.hash, &f.valid, &bad,
		&at, &f.fact)
	pl := locate(f.path)
	f.agent, f.id = pl.Agent, pl.ID
	f.stat.Inode, f.at = uint64(inode), noTime
	if at.Valid {
		f.at = at.Int64
	}
	if bad {
		f.reason = "known"
	}
	return f, err
}

// micros is t as the tables keep it; noTime of the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return noTime
	}
	return t.UnixMicro()
}

// moment is the time that the tables keep as us.
func moment(us int64) time.Time {
	if us == noTime {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// orNull turns noTime into NULL.
func orNull(us int64) any {
	if us == noTime {
		return nil
	}
	return us
}

func scanTime(n sql.NullInt64) time.Time {
	if !n.Valid {
		return time.Time{}
	}
	return moment(n.Int64)
}
