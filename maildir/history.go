package maildir

import (
	"context"
	"time"

	"mailtree/maildir/writer"
)

// History is the audit of one project's tree: Git. The gitlog package is the one implementation.
// None of its methods but Preserve, Flush and Authored waits for Git.
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

	// Flush commits everything handed over so far, also what is still waiting to be quiet.
	Flush(ctx context.Context) error

	State() HistoryState
}

// Op is one operation as the audit tells it.
type Op = writer.Op

// Written is what an operation made of one of its paths.
type Written = writer.Written

// Commit is one commit as Git tells it.
type Commit struct {
	Hash    string
	At      time.Time
	Subject string
}

// HistoryState says how the audit stands, for health and doctor.
type HistoryState struct {
	// Mode is "committing"; "waiting" for a merge, a rebase or a foreign lock; "detached" while the
	// recorded branch is not checked out, when nothing is committed; or "off".
	Mode       string
	Reason     string    // a sentence where Mode is not committing: what is wrong and what to do
	Pending    int       // operations and edited paths not yet in a commit
	LastCommit time.Time // zero when none was made yet
	LastHash   string
}
