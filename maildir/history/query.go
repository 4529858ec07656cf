package history

import (
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
)

// Query selects commits. It is asked of operations where a commit of the server's tells them,
// and of files elsewhere.
type Query struct {
	Op    func(RecordedOp) bool // an operation that is wanted; nil: the files decide
	Since time.Time             // nothing that was committed before; zero: all

	// Path makes the search fast where only what changed at or below a path is wanted, be it a file or a
	// folder: a commit that did not touch it is not told. "": every commit is looked at.
	Path string

	// File reports whether a file is wanted, of a commit of operations, or of one of edits.
	File func(path string, operations bool) bool

	Progress func(looked int, back time.Time) // called now and then with the commits looked at, and the time of the last; nil: nobody is told
}

// Revision is a commit, and what of it was asked for.
type Revision struct {
	Commit
	Author string       // its name
	Ops    []RecordedOp // in their order; none where somebody else's edits are committed, or a person committed
	Edit   bool         // we have committed somebody else's edits
	Files  []FileChange // by path
}

// RecordedOp is an operation as a commit tells it. See writer.Op for its fields.
type RecordedOp struct {
	Verb, Agent, ID, Door, Summary string
}

// FileChange is what a commit did to one file.
type FileChange struct {
	Path  string `json:"path"`
	Op    string `json:"change"`          // Added, Changed, Removed
	Lines string `json:"patch,omitempty"` // those of Patch, of an entry that is told with them

	// Content reads the file: as the commit left it, or as it was before the commit removed it.
	// Patch is the lines that differ, as Git shows them. Both can be called until the function that
	// was given the Revision returns.
	Content func() ([]byte, error) `json:"-"`
	Patch   func() (string, error) `json:"-"`
}

// The values of FileChange.Op.
const (
	Added   = "added"
	Changed = "changed"
	Removed = "removed"
)

// OldFile is a file as it was.
type OldFile struct {
	Path    string
	Content func() ([]byte, error) // can be called until the function that was given the file returns
}

// Moment is a time in the history: that of a commit, or the newest commit that was made by At.
type Moment struct {
	Commit string // its name, or the beginning of it; "": At counts
	At     time.Time
}

// Commit is one commit as Git tells it.
type Commit struct {
	Hash    string // "": it is still to be made
	At      time.Time
	Subject string
}

// Everything asks for every commit.
func Everything() Query {
	return Query{File: func(string, bool) bool { return true }}
}

// OfAgent asks for what an agent did, and for what others edited in its folder.
func OfAgent(name string) Query {
	q := Everything()
	q.Op = func(op RecordedOp) bool { return op.Agent == name }
	q.File = func(path string, operations bool) bool { return operations || format.Locate(path).Agent == name }
	return q
}

// OfRemoved asks for the messages that were removed, and perhaps for others.
func OfRemoved() Query {
	return Query{
		Op:   func(op RecordedOp) bool { return op.Verb == VerbDelete || strings.HasPrefix(op.Verb, UndoPrefix) },
		File: func(path string, _ bool) bool { return format.Locate(path).Kind == format.KindCanonical },
	}
}

// OfMessages asks for messages of those ids, their copies and marks, since a time.
func OfMessages(ids []string, since time.Time) Query {
	of := make(map[string]bool, len(ids))
	for _, id := range ids {
		of[id] = true
	}
	return Query{
		Op:    func(op RecordedOp) bool { return of[op.ID] },
		File:  func(path string, _ bool) bool { return of[format.Locate(path).ID] },
		Since: since,
	}
}

// OfPath asks for a file, or all below a folder. Of a file of a message, the operations on that
// message are asked first: they need no look at the trees.
func OfPath(at string) Query {
	q := Query{
		File:  func(path string, _ bool) bool { return path == at || strings.HasPrefix(path, at+"/") },
		Since: DayOf(at),
		Path:  at,
	}
	if id := format.Locate(at).ID; id != "" {
		q.Op = func(op RecordedOp) bool { return op.ID == id }
	}
	return q
}

// DayOf is the day in the path of a message, or else in an id that this server made: nothing is in
// the history of it before that. Zero: there is none.
func DayOf(name string) time.Time {
	e := strings.Split(name, "/")
	for i := 0; i+3 <= len(e); i++ {
		if t, err := time.Parse("2006/01/02", strings.Join(e[i:i+3], "/")); err == nil {
			return t
		}
	}
	if day, ok := strings.CutPrefix(e[len(e)-1], "msg_"); ok && len(day) >= 8 {
		if t, err := time.Parse("20060102", day[:8]); err == nil {
			return t
		}
	}
	return time.Time{}
}

// Entry is one operation, or the edits that somebody made at once.
type Entry struct {
	At      format.Stamp `json:"at"`
	Commit  string       `json:"commit"`            // "": it is still to be made, as a rule within a second
	Verb    string       `json:"verb"`              // of an operation; VerbEdit, VerbCommit
	Who     string       `json:"who,omitempty"`     // the agent; the author of a commit; "" for the server itself
	ID      string       `json:"id,omitempty"`      // of the message, where there is one
	Summary string       `json:"summary,omitempty"` // one line for people
	Door    string       `json:"door,omitempty"`    // that it came through: format.Door…, or DoorGit; "" for the server's own
	Files   []FileChange `json:"files,omitempty"`
}

// IsOperation reports whether somebody did it through the server, so that it may be undone.
func (e *Entry) IsOperation() bool { return e.Verb != VerbEdit && e.Verb != VerbCommit }

// Verbs that mean something to the history. Those of other operations are the domain's.
const (
	VerbEdit   = "edit"   // no operation: files were saved, and the server has committed them
	VerbCommit = "commit" // no operation: somebody has committed files

	// VerbDelete removes a message for everybody. But for UndoPrefix, no other operation does.
	VerbDelete = "delete"

	// VerbRelease is an operation on claims, although of one that frees a path it is on a message too.
	VerbRelease = "release"

	// UndoPrefix begins the verb of an operation that takes another one back: "undo-send".
	UndoPrefix = "undo-"
)

// DoorGit is the door of VerbCommit.
const DoorGit = "git"

// Entries are the entries of a commit, the last operation first.
func (r *Revision) Entries() []Entry {
	base := Entry{Commit: r.Hash, At: format.At(r.At)}
	if len(r.Ops) == 0 {
		base.Verb, base.Who, base.Door, base.Files = VerbCommit, r.Author, DoorGit, r.Files
		base.Summary = r.Subject
		if r.Edit {
			base.Verb, base.Door = VerbEdit, format.DoorFile
			base.Summary = strings.TrimPrefix(r.Subject, VerbEdit+": ")
		}
		return []Entry{base}
	}
	all := make([]Entry, len(r.Ops))
	last := -1 // the operation that files without a message belong to
	for i, op := range r.Ops {
		all[i] = base
		all[i].Verb, all[i].Who, all[i].ID, all[i].Door, all[i].Summary = op.Verb, op.Agent, op.ID, op.Door, op.Summary
		if op.ID == "" || last < 0 {
			last = i
		}
	}
	for _, f := range r.Files {
		to := last
		if id := format.Locate(f.Path).ID; id != "" {
			to = slices.IndexFunc(all, func(e Entry) bool { return e.ID == id })
		}
		if to >= 0 {
			all[to].Files = append(all[to].Files, f)
		}
	}
	slices.Reverse(all)
	return all
}
