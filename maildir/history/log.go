package history

import (
	"context"
	"time"

	"mailtree/maildir/writer"
)

// Log keeps the history of one tree. None of its methods but Preserve, Flush, Authored, LastDone and
// NamedDone waits for Git.
type Log interface {
	// Run commits what Record and Edited hand over until ctx ends, then commits what is left and
	// returns.
	Run(ctx context.Context) error

	// Record hands over operations of the server whose files are durable. They are committed within a
	// second: docs/durability.md, "What git log tells". done, if not nil, is called once they are in
	// commits, and calls nothing of the Log. The caller changes neither ops nor what they refer to afterwards.
	Record(ops []writer.Op, done func())

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
	Walk(ctx context.Context, q Query, each func(*Revision) error) error

	// AsOf calls show with the files that lay below a folder at some time, by path, and with the newest
	// commit of then. Errors: show's; ErrNotFound where there was no commit yet, or none of that
	// name; ErrInvalid where several have it.
	AsOf(ctx context.Context, at Moment, folder string, show func(Commit, []OldFile) error) error

	State() State
}

// Done is an operation as the history tells it.
type Done struct {
	Verb    string
	ID      string // of the message; "" for an operation on none
	At      time.Time
	Changes []Version // of files of the message, or of claims, in its commit; none where others there may have made them
}

// Version is a file before and after an operation; nil where there is none.
type Version struct {
	Path    string
	Was, Is []byte
}

// Detached is the mode of a history whose recorded branch is not checked out: nothing is committed.
const Detached = "detached"

// State says how the audit stands, for health and doctor.
type State struct {
	// Mode is "committing"; "waiting" for a merge, a rebase or a foreign lock; Detached; or "off".
	Mode       string
	Reason     string    // a sentence where Mode is not committing: what is wrong and what to do
	Pending    int       // operations and edited paths not yet in a commit
	LastCommit time.Time // zero when none was made yet
}
