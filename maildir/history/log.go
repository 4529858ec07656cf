package history

import (
	"context"
	"time"

	"mailtree/maildir/writer"
)

// Log keeps the history of one tree. Only Preserve, Flush, Authored, LastDone, NamedDone and Remote wait for Git.
type Log interface {
	// Run commits what Record and RecordEdits hand over until ctx ends; then it commits the rest and returns.
	Run(ctx context.Context) error

	// StopBy says that the program is about to end, and by when the Log is to end its work. An import of edits
	// ends at once; the next start finds the rest of it. Run continues until its context ends. Only the first
	// call counts.
	StopBy(at time.Time)

	// Record hands over operations of the server whose files are durable. They are committed within a
	// second: docs/durability.md, "What git log shows". done, if not nil, is called once they are in
	// commits, and calls nothing of the Log. The caller changes neither ops nor what they refer to afterwards.
	Record(ops []writer.Op, done func())

	// RecordEdits hands over paths that others changed, added or removed (a folder stands for everything below
	// it). They are committed after two quiet seconds, and after 30 seconds at the latest, or at once if there
	// are very many.
	RecordEdits(paths []string)

	// Preserve returns once the current content of each existing path is in a commit, so that the server
	// may replace or remove the file. Its error wraps ErrUnavailable; the file must then be left alone. See
	// docs/durability.md, "What the server leaves alone".
	Preserve(ctx context.Context, paths []string) error

	// Authored returns the agent's commits among the newest, newest first, at most n.
	Authored(ctx context.Context, agent string, n int) ([]Commit, error)

	// LastDone returns the operations that q selects, newest first. It looks at waiting operations and the
	// newest commits. Its error wraps ErrUnavailable if a waiting operation cannot be examined.
	LastDone(ctx context.Context, q DoneQuery) ([]Done, error)

	// NamedDone returns the ids with one of the prefixes of messages in operations of the newest commits,
	// the newest operation's first.
	NamedDone(ctx context.Context, prefixes []string) ([]string, error)

	// Flush commits everything handed over so far, also edits that are still waiting for quiet.
	Flush(ctx context.Context) error

	// Walk calls each for the commits that q selects, newest first. Waiting operations come first, as
	// commits without a hash. It ends after the oldest commit, with fs.SkipAll of
	// each, or with another error of each or ctx.
	Walk(ctx context.Context, q Query, each func(*Revision) error) error

	// AsOf calls show with the files that were below a folder at some time, sorted by path, and with the
	// newest commit of that time. It returns the error of show, ErrNotFound if there was no commit yet or
	// none of that name, and ErrInvalid if the name is ambiguous.
	AsOf(ctx context.Context, at Moment, folder string, show func(Commit, []OldFile) error) error

	State() State

	Remote
}

// DoneQuery selects operations of one agent that were not undone since (UndoPrefix). A redoing (RedoPrefix) is
// an operation of its own, with the verb of what it does again.
type DoneQuery struct {
	Agent string
	ID    string                 // only operations on this message; "": all
	Wants func(verb string) bool // reports whether operations with that verb are wanted
	Most  int                    // at most this many steps; an operation without a step counts as one

	// Along reports whether operations with that verb that are not wanted come along with a wanted one of the
	// same step. With an ID each operation is a step of its own. nil: none comes along.
	Along func(verb string) bool

	// Undone selects instead operations that were undone and not redone since. Each Done then describes the
	// undoing, but has the verb of the operation. An operation that is wanted and neither undoes nor redoes
	// one ends the list: what was undone before it is not redone any more.
	Undone bool
}

// Done is an operation in the history.
type Done struct {
	Verb    string
	ID      string // of the message; "" for an operation on no message
	At      time.Time
	Step    string // with Undone that of the undoing; see writer.Op
	Summary string // see writer.Op
	Commit  string // its hash

	// Changes are the changes that the commit made to the message's files, or to claims; none if other
	// operations of the commit may have made them. Only those of the first step of an answer have them.
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

// ImportFrom is how many waiting paths make edits an import. Logs and doctor show the progress of an import, and
// a stop leaves the rest of it to the next start.
const ImportFrom = 1000

// Import is the progress of committing a large number of edits; the zero Import: none is under way.
type Import struct {
	Committed int `json:"committed"` // paths that were committed since it began
	Left      int `json:"left"`      // paths that are not committed yet
}
