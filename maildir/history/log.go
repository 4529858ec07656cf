package history

import (
	"context"
	"time"

	"mailtree/maildir/writer"
)

// Log keeps the history of one tree. Only Preserve, Flush, Authored, LastDone, NamedDone and Remote wait for Git.
type Log interface {
	// Run commits the operations and edits passed to Record and RecordEdits until ctx ends. Then it commits the
	// rest, except an unfinished import, and returns.
	Run(ctx context.Context) error

	// StopBy announces that the program is about to end, and by when the Log must end its work. An import of edits
	// ends at once; the next start finds the rest of the import. Run continues until its context ends. Only the
	// first call has an effect.
	StopBy(at time.Time)

	// Record queues operations of the server whose files are durable. They are committed within a second:
	// docs/durability.md, "What git log shows". If done is not nil, it is called once the operations are in
	// commits. done must not call the Log. After the call, the caller must not change ops or the data that they
	// refer to.
	Record(ops []writer.Op, done func())

	// RecordEdits queues paths that others changed, added or removed (a folder means everything below it). They are
	// committed two seconds after the last change, after 30 seconds at the latest, or at once if there are very
	// many.
	RecordEdits(paths []string)

	// Preserve returns once the current content of each existing path is in a commit, so that the server may
	// replace or remove the file. If the error wraps ErrUnavailable, the server must not touch the files. See
	// docs/durability.md, "What the server leaves alone".
	Preserve(ctx context.Context, paths []string) error

	// Authored returns the agent's commits among the newest, newest first, at most n.
	Authored(ctx context.Context, agent string, n int) ([]Commit, error)

	// LastDone returns the operations that q selects, newest first. It examines the waiting operations and the
	// newest commits. Its error wraps ErrUnavailable if a waiting operation cannot be examined.
	LastDone(ctx context.Context, q DoneQuery) ([]Done, error)

	// NamedDone returns the message ids that begin with one of the prefixes, from the operations in the newest
	// commits, newest operation first.
	NamedDone(ctx context.Context, prefixes []string) ([]string, error)

	// Flush commits everything recorded so far, including edits that are still too recent for a commit of their
	// own.
	Flush(ctx context.Context) error

	// Walk calls each for the commits that q selects, newest first. Waiting operations come first, as commits
	// without a hash. It ends after the oldest commit, when each returns fs.SkipAll, or with another error of each
	// or of ctx.
	Walk(ctx context.Context, q Query, each func(*Revision) error) error

	// AsOf calls show with the files that were below a folder at some time, sorted by path, and with the newest
	// commit of that time. It returns the error of show, ErrNotFound if there was no commit at that time or there
	// is no commit with that name, and ErrInvalid if the name is ambiguous.
	AsOf(ctx context.Context, at Moment, folder string, show func(Commit, []OldFile) error) error

	State() State

	Remote
}

// DoneQuery selects operations of one agent that were not undone since (UndoPrefix). A redo (RedoPrefix) is a
// separate operation, with the verb of the operation that it redoes.
type DoneQuery struct {
	Agent string
	ID    string                 // only operations on this message; "": all
	Wants func(verb string) bool // reports whether operations with that verb are wanted
	Most  int                    // at most this many steps; an operation without a step counts as one

	// Along reports whether operations with that verb, although not wanted, are included with a wanted operation of
	// the same step. If ID is set, each operation counts as a step of its own. nil: no such operation is included.
	Along func(verb string) bool

	// Undone selects instead the operations that were undone and not redone since. Each Done then describes the
	// undo, but has the verb of the undone operation. The list ends at a wanted operation that is neither an undo
	// nor a redo, because operations undone before it can no longer be redone.
	Undone bool
}

// Done is an operation in the history.
type Done struct {
	Verb    string
	ID      string // of the message; "" if the operation concerns no message
	At      time.Time
	Step    string // see writer.Op; with Undone the step of the undo
	Summary string // see writer.Op
	Commit  string // its hash

	// Changes are the changes that the commit made to the message's files, or to claims. Changes is empty if other
	// operations of the commit may have made them. Only the operations of the first step in an answer have Changes.
	Changes []Version
}

// Version is a file before and after an operation; nil means that there was no file.
type Version struct {
	Path    string
	Was, Is []byte
}

// Detached is the mode of a history whose recorded branch is not checked out: nothing is committed.
const Detached = "detached"

// State is the state of the audit, for health and doctor.
type State struct {
	// Mode is "committing"; "waiting" for a merge, a rebase or a foreign lock; Detached; or "off".
	Mode       string
	Reason     string    // a sentence if Mode is not committing: what is wrong and what to do
	Pending    int       // operations and edited paths not yet in a commit
	LastCommit time.Time // zero if none was made yet
	Import     Import
}

// ImportFrom is the number of waiting paths from which edits count as an import. Logs and doctor show the progress
// of an import. If the server stops during an import, the next start commits the rest.
const ImportFrom = 1000

// Import is the progress of committing a large number of edits; the zero Import means that no import is in
// progress.
type Import struct {
	Committed int `json:"committed"` // paths that were committed since it began
	Left      int `json:"left"`      // paths that are not committed yet
}
