package maildir

import (
	"context"
	"time"

	"mailtree/maildir/writer"
)

// History is the audit of one project's tree: Git. The gitlog package is the one implementation.
// None of its methods but Preserve, Flush, Authored, LastDone and NamedDone waits for Git.
type History interface {
	// Run commits what Record and Edited hand over until ctx ends, then commits what is left and
	// returns.
	Run(ctx context.Context) error

	// Record hands over operations of the server whose files are durable. They are committed within a
	// second: docs/durability.md, "What git log tells". done, if not nil, is called once they are in
	// commits. The caller changes neither ops nor what they refer to afterwards.
	Record(ops []Op, done func())

	// Edited hands over paths that somebody else changed, added or removed (a folder stands for all
	// below it). They are committed after two quiet seconds, at the latest after 30.
	Edited(paths []string)

	// Preserve returns once the present content of each path that exists is in a commit, so that
	// the server may replace or remove the file. An error wraps ErrUnavailable: then the file must
	// be left alone. See docs/durability.md, "What the server leaves alone".
	Preserve(ctx context.Context, paths []string) error

	// Authored lists the agent's commits among the newest, newest first, at most n.
	Authored(ctx context.Context, agent string, n int) ([]Commit, error)

	// LastDone finds the agent's newest operation, on that message where id is not "", among those that
	// wait and the newest commits, whose verb is wanted and that is not taken back since (UndoPrefix).
	// nil: there is none. An error wraps ErrUnavailable where one that waits cannot be told.
	LastDone(ctx context.Context, agent, id string, wants func(verb string) bool) (*Done, error)

	// NamedDone lists the ids of messages that operations among the newest commits were on and that
	// have one of the prefixes, the newest operation's first.
	NamedDone(ctx context.Context, prefixes []string) ([]string, error)

	// Flush commits everything handed over so far, also what is still waiting to be quiet.
	Flush(ctx context.Context) error

	// Walk calls each for the commits that q asks for, newest first. Operations that wait come first, as
	// commits without a name. It ends with the oldest commit, or with the error of each or ctx.
	Walk(ctx context.Context, q HistoryQuery, each func(*Revision) error) error

	// AsOf calls show with the files that lay below a folder at some time, by path, and with the newest
	// commit of then. Errors: show's; ErrNotFound where there was no commit yet, or none of that
	// name; ErrInvalid where several have it.
	AsOf(ctx context.Context, at Moment, folder string, show func(Commit, []OldFile) error) error

	State() HistoryState
}

// HistoryQuery selects commits. It is asked of operations where a commit of the server's tells them,
// and of files elsewhere.
type HistoryQuery struct {
	Op     func(RecordedOp) bool  // an operation that is wanted; nil: the files decide
	Folder func(path string) bool // whether a file that is wanted may lie below that folder
	Since  time.Time              // nothing that was committed before; zero: all

	// Keys name what is wanted, and make the search fast: a commit that has none of them is not looked
	// at. They are ids of messages, names of agents, folders, files that have no id, and RemovedFrom.
	// nil: every commit is looked at.
	Keys []string

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

// RemovedFrom is the key of the commits that removed a message of a thread: its canonical file.
func RemovedFrom(thread string) string { return "removed from " + thread }

// RecordedOp is an operation as a commit tells it. See Op for its fields.
type RecordedOp struct {
	Verb, Agent, ID, Door, Summary string
}

// FileChange is what a commit did to one file.
type FileChange struct {
	Path string
	Op   string // Added, Changed, Removed

	// Content reads the file: as the commit left it, or as it was before the commit removed it.
	// Patch is the lines that differ, as Git shows them. Both can be called until the function that
	// was given the Revision returns.
	Content func() ([]byte, error)
	Patch   func() (string, error)
}

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

// Op is one operation as the audit tells it.
type Op = writer.Op

// Through says that the operations of ctx come through a door, one of format.Door…, for the history.
func Through(ctx context.Context, door string) context.Context { return writer.Through(ctx, door) }

// Written is what an operation made of one of its paths.
type Written = writer.Written

// Commit is one commit as Git tells it.
type Commit struct {
	Hash    string // "": it is still to be made
	At      time.Time
	Subject string
}

// HistoryDetached is the mode of a history whose recorded branch is not checked out: nothing is
// committed.
const HistoryDetached = "detached"

// HistoryState says how the audit stands, for health and doctor.
type HistoryState struct {
	// Mode is "committing"; "waiting" for a merge, a rebase or a foreign lock; HistoryDetached; or
	// "off".
	Mode       string
	Reason     string    // a sentence where Mode is not committing: what is wrong and what to do
	Pending    int       // operations and edited paths not yet in a commit
	LastCommit time.Time // zero when none was made yet
	LastHash   string
}
