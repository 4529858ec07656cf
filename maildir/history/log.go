package history

import (
	"context"
	"time"

	"mailtree/maildir/writer"
)

// Log keeps the history of one tree. Only Preserve, Flush, Authored, LastDone, NamedDone and the methods of Remote
// wait for Git.
type Log interface {
	// Run commits the operations and edits passed to Record and RecordEdits until ctx is done. Then it commits
	// everything that remains, except for an unfinished import, and returns.
	Run(ctx context.Context) error

	// StopBy announces that the process is about to exit, and that the Log must finish by the given time. An import of
	// edits stops immediately, and the server imports the remaining edits after its next start. Run continues until its
	// context ends. Only the first call has an effect.
	StopBy(at time.Time)

	// Record queues server operations whose files are durable. They are committed within a second (see
	// docs/explanation/durability.md, "What git log shows"). If done is not nil, it is called once the operations have
	// been committed. The function done must not call methods of the Log. After calling Record, the caller must not
	// change ops or any data that they refer to.
	Record(ops []writer.Op, done func())

	// RecordEdits queues paths that other programs have changed, added or removed. A folder's path stands for
	// everything below the folder. The edits are committed two seconds after the last change, but no later than 30
	// seconds after the first one. If there are very many edits, they are committed immediately.
	RecordEdits(paths []string)

	// Preserve returns once the current content of each existing file is in a commit, so that the server may replace
	// or remove the file. If the error wraps ErrUnavailable, the server must not change the files. See
	// docs/explanation/durability.md, "What the server leaves alone".
	Preserve(ctx context.Context, paths []string) error

	// Authored returns up to n of the agent's commits, newest first. It examines only the newest commits.
	Authored(ctx context.Context, agent string, n int) ([]Commit, error)

	// LastDone returns the operations that q selects, newest first. It searches the uncommitted operations and the
	// newest commits. If it cannot read an uncommitted operation, its error wraps ErrUnavailable.
	LastDone(ctx context.Context, q DoneQuery) ([]Done, error)

	// NamedDone returns the message ids that begin with one of the prefixes. It searches only the newest commits,
	// starting with the newest operation.
	NamedDone(ctx context.Context, prefixes []string) ([]string, error)

	// Flush commits everything recorded so far, including edits that would normally be committed later.
	Flush(ctx context.Context) error

	// KeepPacks keeps the Log from repacking, and thus from removing any object, until done is called. If a repack is
	// in progress, KeepPacks waits for it.
	KeepPacks(ctx context.Context) (done func(), err error)

	// Still commits everything recorded so far, if possible, and then calls fn. Until fn returns, the Log changes
	// neither the branch nor the index. If a commit takes too long, Still returns ErrUnavailable without calling fn.
	Still(ctx context.Context, fn func() error) error

	// Walk calls each with the commits that q selects, newest first. Operations that are not committed yet come first,
	// as commits without a hash. Walk ends after the oldest commit, or when each returns fs.SkipAll. It returns any
	// other error from each or ctx.
	Walk(ctx context.Context, q Query, each func(*Revision) error) error

	// AsOf calls show with the files that were in a folder and its subfolders at the given time, sorted by path, and
	// with the newest commit at that time. It returns any error from show. It returns ErrNotFound if there was no
	// commit at that time or no commit has the given name, and ErrInvalid if the name is ambiguous.
	AsOf(ctx context.Context, at Moment, folder string, show func(Commit, []OldFile) error) error

	State() State

	Remote
}

// DoneQuery selects an agent's operations that have not been undone. Undos (UndoPrefix) themselves are not selected. A
// redo (RedoPrefix) is selected as an operation with the verb of the operation that it redoes.
type DoneQuery struct {
	Agent string
	ID    string                 // only operations on this message; empty means any message
	Wants func(verb string) bool // reports whether operations with the given verb are wanted
	Most  int                    // maximum number of steps; an operation without a step counts as one step

	// Along reports whether an unwanted operation with the given verb is included if it belongs to the same step as a
	// wanted operation. If ID is set, each operation is a step of its own. If Along is nil, only wanted operations are
	// included.
	Along func(verb string) bool

	// Undone selects the operations that were undone and have not been redone since then. If it is set, each Done
	// describes the undo, but has the verb of the undone operation. The list ends at the first wanted operation that is
	// neither an undo nor a redo, because older undos can no longer be redone.
	Undone bool
}

// Done is an operation in the history.
type Done struct {
	Verb    string
	ID      string // message id; empty if the operation does not concern a message
	At      time.Time
	Step    string // the operation's step (see writer.Op) or, if Undone is set, the step of the undo
	Summary string // see writer.Op
	Commit  string // hash of the commit

	// Changes lists the commit's changes to the message's files, to claims and to holds. It is empty if other
	// operations in the same commit may have made these changes. Only the operations of the first step in a result
	// have Changes.
	Changes []Version
}

// Version contains a file's content before and after an operation. Was or Is is nil if the file did not exist.
type Version struct {
	Path    string
	Was, Is []byte
}

// Detached is the State.Mode of a history whose branch is not checked out. Nothing is committed in this mode.
const Detached = "detached"

// State is the state of the history, for the health check and `mailtree doctor`.
type State struct {
	// Mode is "committing", "waiting" (for a merge, a rebase or another program's lock), Detached, or "off".
	Mode       string
	Reason     string    // a sentence that says what is wrong and what to do; empty if Mode is committing
	Pending    int       // number of operations and edited paths that have not been committed yet
	LastCommit time.Time // zero if there is no commit yet
	Import     Import
}

// ImportFrom is the minimum number of waiting paths for which committing edits counts as an import. Logs and doctor
// show an import's progress. If the server stops during an import, it commits the remaining paths after its next
// start.
const ImportFrom = 1000

// Import is the progress of committing a large number of edits. The zero Import means that no import is in progress.
type Import struct {
	Committed int `json:"committed"` // paths committed since the import began
	Left      int `json:"left"`      // paths not committed yet
}
