package history

import (
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
)

// Query selects commits, and parts of them. Op selects operations in the server's commits, and File selects files in
// all commits.
type Query struct {
	Op    func(RecordedOp) bool // reports whether an operation is wanted; if nil, File decides
	Since time.Time             // only commits at or after this time; zero for all

	// Path speeds up a search for changes to a file, or to anything below a folder: commits that did not touch the
	// path are skipped. If Path is "", every commit is examined.
	Path string

	// File reports whether a file is wanted. The argument operations reports whether the commit contains operations
	// rather than edits.
	File func(path string, operations bool) bool

	Progress func(looked int, back time.Time) // called with the number of commits examined so far and the time of the last one; may be nil
}

// Revision contains the parts of a commit that a query selects.
type Revision struct {
	Commit
	Author string       // the author's name
	Ops    []RecordedOp // the operations, in order; empty for a commit of edits or a commit by a user
	Edit   bool         // the server committed edits by users or other programs
	Files  []FileChange // sorted by path
}

// RecordedOp is an operation as recorded in a commit. See writer.Op for its fields.
type RecordedOp struct {
	Verb, Agent, ID, Marks, Door, Step, Summary string // as in writer.Op
}

// about reports whether the operation wrote files that belong to the message with the given id.
func (op *RecordedOp) about(id string) bool { return op.ID == id || op.Marks == id }

// FileChange is a commit's change to one file.
type FileChange struct {
	Path  string `json:"path"`
	Op    string `json:"change"`          // Added, Changed, Removed
	Lines string `json:"patch,omitempty"` // the result of Patch, if the entry is to include it

	// Content returns the file's content after the commit or, if the commit removed the file, before it. Patch returns
	// the changed lines as Git shows them. Content and Patch may be called only until the function that received the
	// Revision returns.
	Content func() ([]byte, error) `json:"-"`
	Patch   func() (string, error) `json:"-"`
}

// Values of FileChange.Op.
const (
	Added   = "added"
	Changed = "changed"
	Removed = "removed"
)

// OldFile is a file as it was at a past time.
type OldFile struct {
	Path    string
	Content func() ([]byte, error) // valid only until the function that received the file returns
}

// Moment identifies a point in the history: a commit, or the newest commit at or before a time.
type Moment struct {
	Commit string // the commit's hash or a prefix of it; empty to use At
	At     time.Time
}

// Commit is a Git commit.
type Commit struct {
	Hash    string // empty if it has not been committed yet
	At      time.Time
	Subject string
}

// Everything selects every commit.
func Everything() Query {
	return Query{File: func(string, bool) bool { return true }}
}

// OfAgent selects an agent's operations, and edits by users and other programs in the agent's folder.
func OfAgent(name string) Query {
	q := Everything()
	q.Op = func(op RecordedOp) bool { return op.Agent == name }
	q.File = func(path string, operations bool) bool { return operations || format.Locate(path).Agent == name }
	return q
}

// OfRemoved selects the commits that removed messages. It may also select other commits.
func OfRemoved() Query {
	return Query{
		Op: func(op RecordedOp) bool {
			return op.Verb == VerbDelete || op.Verb == RedoPrefix+VerbDelete || strings.HasPrefix(op.Verb, UndoPrefix)
		},
		File: func(path string, _ bool) bool { return format.Locate(path).Kind == format.KindCanonical },
	}
}

// OfMessages selects changes to the messages with the given ids, their copies and their marks. It omits changes
// before a given time.
func OfMessages(ids []string, since time.Time) Query {
	of := make(map[string]bool, len(ids))
	for _, id := range ids {
		of[id] = true
	}
	return Query{
		Op:    func(op RecordedOp) bool { return of[op.ID] || of[op.Marks] },
		File:  func(path string, _ bool) bool { return of[format.Locate(path).ID] },
		Since: since,
	}
}

// OfPath selects changes to a file, or to everything below a folder. If the file belongs to a message, OfPath also
// selects the operations on that message, which can be found without reading Git's trees.
func OfPath(at string) Query {
	q := Query{
		File:  func(path string, _ bool) bool { return path == at || strings.HasPrefix(path, at+"/") },
		Since: DayOf(at),
		Path:  at,
	}
	if id := format.Locate(at).ID; id != "" {
		q.Op = func(op RecordedOp) bool { return op.about(id) }
	}
	return q
}

// DayOf returns the day that is part of a message's path or id. It uses the date folders of a path if there are any,
// and otherwise the date in a server-created id. The history contains no changes to the message before that day. DayOf
// returns the zero time if name contains no day.
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

// Entry is an operation, or a set of edits that were committed together.
type Entry struct {
	At      format.Stamp `json:"at"`
	Commit  string       `json:"commit"`            // hash of the commit; empty if not committed yet (usually less than a second)
	Verb    string       `json:"verb"`              // the operation's verb; or VerbEdit, VerbRemove, VerbCommit
	Who     string       `json:"who,omitempty"`     // the agent, or the commit's author; empty for the server itself
	ID      string       `json:"id,omitempty"`      // message id, if any
	Summary string       `json:"summary,omitempty"` // one readable line
	Subject string       `json:"subject,omitempty"` // the message's subject, set if Summary does not contain it
	Door    string       `json:"door,omitempty"`    // the channel: format.Door…, or DoorGit; empty for the server itself
	Files   []FileChange `json:"files,omitzero"`
}

// IsOperation reports whether the entry is a server operation, which may be undone.
func (e *Entry) IsOperation() bool {
	return e.Verb != VerbEdit && e.Verb != VerbRemove && e.Verb != VerbCommit
}

// These are the verbs that the history interprets. Package maildir defines the other verbs.
const (
	VerbEdit   = "edit"   // not an operation: the server committed edited files
	VerbRemove = "remove" // not an operation: the server committed the removal of files
	VerbCommit = "commit" // not an operation: a user committed files

	// VerbDelete removes a message for everyone. Apart from undo and redo, no other operation removes messages.
	VerbDelete = "delete"

	// These are the verbs of operations on claims. An operation that releases another agent's claim also sends a
	// message.
	VerbClaim   = "claim"
	VerbRenew   = "renew"
	VerbRelease = "release"

	// VerbRegister and VerbPresence are the verbs of operations that write only agents' profiles.
	VerbRegister = "register"
	VerbPresence = "presence"

	// VerbHold and VerbGo are the verbs of the operations that begin and end a hold on an agent. These operations
	// also send a message.
	VerbHold = "hold"
	VerbGo   = "go"

	// UndoPrefix begins the verb of an operation that undoes another operation: "undo-send".
	UndoPrefix = "undo-"

	// RedoPrefix begins the verb of an operation that redoes an undone operation: "redo-send".
	RedoPrefix = "redo-"
)

// BesideMessage reports whether an operation with the given verb may write claims or holds in addition to sending a
// message.
func BesideMessage(verb string) bool {
	return verb == VerbRelease || verb == VerbHold || verb == VerbGo
}

// AboutBeside returns the subject of an operation on a claim or hold, such as "app/**" or "AmberFox: wait for me".
// BesideMessage must return true for the operation's verb. The argument who is the agent that performed the operation,
// and summary is the operation's summary.
func AboutBeside(verb, who, summary string) string {
	about := strings.TrimPrefix(summary, who+" ")
	switch verb {
	case VerbHold:
		about = strings.TrimPrefix(about, "holds ")
	case VerbGo:
		about = strings.TrimPrefix(about, "ends the hold of ")
	}
	return about
}

// DoorGit is the channel of an entry with VerbCommit.
const DoorGit = "git"

// editVerb returns the verb for a commit of edits: VerbRemove if the commit removed all selected files, otherwise
// VerbEdit.
func (r *Revision) editVerb() string {
	kept := func(f FileChange) bool { return f.Op != Removed }
	if strings.HasPrefix(r.Subject, VerbRemove+": ") || len(r.Files) > 0 && !slices.ContainsFunc(r.Files, kept) {
		return VerbRemove
	}
	return VerbEdit
}

// Entries returns the entries of a commit, last operation first.
func (r *Revision) Entries() []Entry {
	base := Entry{Commit: r.Hash, At: format.At(r.At)}
	if len(r.Ops) == 0 {
		base.Verb, base.Who, base.Door, base.Files = VerbCommit, r.Author, DoorGit, r.Files
		base.Summary = r.Subject
		if r.Edit {
			base.Verb, base.Door = r.editVerb(), format.DoorFile
			base.Summary = strings.TrimPrefix(strings.TrimPrefix(r.Subject, VerbEdit+": "), VerbRemove+": ")
		}
		return []Entry{base}
	}
	all := make([]Entry, len(r.Ops))
	last := -1 // index of the operation for files that belong to no message
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
			to = slices.IndexFunc(r.Ops, func(op RecordedOp) bool { return op.about(id) })
		}
		if to >= 0 {
			all[to].Files = append(all[to].Files, f)
		}
	}
	slices.Reverse(all)
	return all
}
