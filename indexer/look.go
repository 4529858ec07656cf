package indexer

import (
	"crypto/sha256"
	"errors"
	"path"
	"strings"
	"syscall"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// observation is the result of examining a path.
type observation struct {
	path       string
	file       *file // nil if there is no such file or the path is a folder
	folder     bool
	same       bool  // whether the stamp proves that nothing changed or the file is unreadable; if so, file is nil
	unreadable error // the machine fault that prevented the observation; nil if there was none

	msg     *format.Message
	claim   *format.Claim
	profile *format.Profile
	status  string
	hold    *format.Hold
}

// observer reads the files of a tree for one batch. It parses identical copies of a message only once.
type observer struct {
	tree   *tree.Tree
	now    func() time.Time
	given  map[string]tree.Written // the files that the caller has just written, by path
	dirs   map[string]bool         // whether each path is a folder and contains no symbolic links
	parsed map[parseKey]parse
}

// digest identifies the bytes of a file: half of their SHA-256.
type digest [sha256.Size / 2]byte

func digestOf(data []byte) digest {
	sum := sha256.Sum256(data)
	return digest(sum[:])
}

type parseKey struct {
	sum digest
	id  string
}

type parse struct {
	msg *format.Message
	err error
}

func newLooker(tree *tree.Tree, now func() time.Time) *observer {
	return &observer{
		tree:   tree,
		now:    now,
		dirs:   map[string]bool{},
		parsed: map[parseKey]parse{},
	}
}

// at examines p. The argument known is p's row in the index, or nil if there is none.
func (l *observer) at(p string, known *file) *observation {
	pl, now := locate(p), l.now().UnixNano()
	// No correct caller passes the path of a folder that contains mail. Such a path is treated as if there were no
	// file.
	if pl.Kind == format.KindIgnored {
		return &observation{path: p}
	}
	f := &file{
		path:  p,
		kind:  pl.Kind,
		agent: pl.Agent,
		id:    pl.ID,
	}
	switch w, ok := l.given[p]; {
	case ok && w.Gone:
		return &observation{path: p}
	case ok && len(w.Data) > 0 && int64(len(w.Data)) <= l.limit(pl.Kind) && pl.Bad == "" && hasContent(pl.Kind):
		// If a program has written to the file since its rename, either the mtime is at or after the rename's ctime, or
		// the program has set the mtime back. maildir checks for this when the watcher reports the file (takeEdits).
		f.stamp = stampOf(f.kind, w.Stat, w.Stat.MTime < w.Stat.CTime)
		return l.made(f, w.Data)
	}
	empty := !hasContent(pl.Kind) || pl.Bad != ""
	if known != nil || empty {
		switch real, err := l.real(path.Dir(p)); {
		case err != nil:
			return notLooked(p, err)
		case !real:
			return &observation{path: p}
		}
		st, err := l.tree.Stat(p)
		switch {
		case err != nil:
			return l.failed(f, err)
		case st.Mode.IsDir():
			return &observation{path: p, folder: true}
		case known != nil && known.level(st):
			return &observation{path: p, same: true}
		}
		if empty && (st.Mode.IsRegular() || pl.Bad != "") {
			f.read(st, now)
			f.reason, f.valid = pl.Bad, pl.Bad == ""
			return &observation{path: p, file: f}
		}
	}
	return l.read(f, now)
}

// limit returns the maximum size, in bytes, of a file of kind k. A file from another machine may be larger.
func (l *observer) limit(k format.Kind) int64 {
	if isMessage(k) {
		return l.tree.MaxFile()
	}
	return format.MaxSmall
}

// read reads and parses the file. The argument now is a time before the file is read, in Unix nanoseconds.
func (l *observer) read(f *file, now int64) *observation {
	data, st, err := l.tree.Read(f.path, l.limit(f.kind))
	var bad *tree.FormatError
	switch fault := tree.FaultOf(err); {
	case st.Mode.IsDir():
		return &observation{path: f.path, folder: true}
	case fault == tree.FaultFile && errors.As(err, &bad):
		f.read(st, now)
		f.reason, f.line = bad.Reason+": move it elsewhere, or replace it with a regular file", bad.Line
		if over := new(tree.SizeError); errors.As(err, &over) {
			f.reason = bad.Reason + ": move the file elsewhere, or replace it with a smaller one"
		}
		return &observation{path: f.path, file: f}
	case fault != tree.NoFault:
		return l.failed(f, err)
	}
	f.read(st, now)
	return l.made(f, data)
}

// made returns the observation for a file f that contains data.
func (l *observer) made(f *file, data []byte) *observation {
	lk, sum := &observation{path: f.path, file: f}, digestOf(data)
	f.hash, f.valid = sum[:], true
	if err := lk.parse(l, data, sum); err != nil {
		var bad *tree.FormatError
		if !errors.As(err, &bad) {
			bad = &tree.FormatError{Reason: err.Error()}
		}
		f.reason, f.line = bad.Reason, bad.Line
		f.valid = f.kind.Mark() || f.kind == format.KindReleased
	}
	return lk
}

// parse extracts the values for the rows from the file's bytes. See docs/reference/tree.md, "Problems".
func (lk *observation) parse(l *observer, data []byte, sum digest) (err error) {
	f := lk.file
	switch f.kind {
	case format.KindCanonical, format.KindInbox, format.KindOutbox:
		lk.msg, err = l.message(f.id, data, sum)
		if err != nil {
			return unsentInstead(f, data, err)
		}
		switch f.kind {
		case format.KindInbox:
			f.fact = lk.msg.KindFor(f.agent)
		case format.KindOutbox:
			f.fact = strings.Join(lk.msg.BCC, " ")
		}
	case format.KindRead, format.KindAck, format.KindArchived, format.KindReleased:
		f.at, err = format.ParseMark(data)
	case format.KindLater:
		f.at, err = format.ParseLater(data)
	case format.KindProfile:
		var p format.Profile
		p, err = format.ParseProfile(f.agent, data)
		lk.profile = &p
	case format.KindStatus:
		lk.status, err = format.ParseStatus(data)
	case format.KindHold:
		var h format.Hold
		h, err = format.ParseHold(data)
		lk.hold = &h
	case format.KindClaim:
		var c format.Claim
		c, err = format.ParseClaim(data)
		lk.claim = &c
	case format.KindProject:
		_, _, err = format.ParseProject(data)
	}
	return err
}

// unsentInstead returns the problem to record for an invalid message file. If the file was saved in an outbox to be
// sent, the problem says why it was not sent. Otherwise, the problem is err itself.
func unsentInstead(f *file, data []byte, err error) error {
	if f.kind == format.KindOutbox {
		u, bad := format.ParseUnsent(data)
		switch {
		case bad != nil && !format.IsSentCopy(f.path):
			return bad
		case bad == nil && u.ID == "":
			if format.ServerName(f.agent) {
				return &tree.FormatError{Reason: "the file cannot be sent: " + f.agent + " is reserved for the " +
					"server's own messages"}
			}
			return &tree.FormatError{Reason: format.NotYetSent}
		case bad == nil && u.ID != f.id && !format.IsSentCopy(f.path):
			return &tree.FormatError{Reason: "the file has the id " + format.Quote(u.ID) + ", but only sent " +
				"messages have ids: remove the id to send the file as a new message"}
		}
	}
	return err
}

// message parses the bytes. If the batch has already parsed equal bytes, message returns the earlier result.
func (l *observer) message(id string, data []byte, sum digest) (*format.Message, error) {
	k := parseKey{sum, id}
	p, ok := l.parsed[k]
	if !ok {
		p.msg, p.err = format.ParseMessage(id, data)
		l.parsed[k] = p
	}
	return p.msg, p.err
}

// content returns f's message if the batch has read f. Otherwise, it returns nil.
func (l *observer) content(f *file) *format.Message {
	return l.parsed[parseKey{digest(f.hash), f.id}].msg
}

// failed returns the observation for a file that could not be opened or read. If the file itself is the cause, the
// observation contains a problem, and every later batch examines the file again. A machine fault leaves the file's rows
// unchanged.
func (l *observer) failed(f *file, err error) *observation {
	switch tree.FaultOf(err) {
	case tree.FaultGone:
		return &observation{path: f.path}
	case tree.FaultMachine:
		return notLooked(f.path, err)
	}
	st, serr := l.tree.Stat(f.path)
	switch tree.FaultOf(serr) {
	case tree.NoFault:
	case tree.FaultMachine:
		return notLooked(f.path, serr)
	// The folder may be inaccessible, or the name may be invalid. A walk would not find the file either.
	default:
		return &observation{path: f.path}
	}
	f.stamp, f.reason = stampOf(f.kind, st, false), "cannot be read ("+cause(err).Error()+"): fix its permissions"
	return &observation{path: f.path, file: f}
}

func notLooked(p string, err error) *observation {
	return &observation{path: p, same: true, unreadable: cause(err)}
}

// cause returns err without the operation and path that package os adds.
func cause(err error) error {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no
	}
	return err
}

// real reports whether dir is a folder whose path contains no symbolic links. It returns an error only for a machine
// fault.
func (l *observer) real(dir string) (bool, error) {
	if dir == "." {
		return true, nil
	}
	is, ok := l.dirs[dir]
	if ok {
		return is, nil
	}
	is, err := l.real(path.Dir(dir))
	if is {
		var st tree.FileStat
		st, err = l.tree.Stat(dir)
		is = err == nil && st.Mode.IsDir()
	}
	if tree.FaultOf(err) == tree.FaultMachine {
		return false, err
	}
	l.dirs[dir] = is
	return is, nil
}
