package maildir

import (
	"context"
	"slices"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// History is the audit of one project's tree: Git. The gitlog package is the one implementation.
// None of its methods but Preserve and Flush waits for Git.
type History interface {
	// Run commits what Record and Edited hand over until ctx ends, then commits what is left and returns.
	Run(ctx context.Context) error

	// Record hands over operations of the server whose files are durable. They are committed within a second,
	// one line per operation, in this order. done, if not nil, is called once they are in a commit. The caller
	// changes neither ops nor what they refer to afterwards.
	Record(ops []Op, done func())

	// Edited hands over paths that somebody else changed, added or removed (a folder stands for all below it).
	// They are committed after two quiet seconds, at the latest after 30.
	Edited(paths []string)

	// Preserve returns once the present content of each path that exists is in a commit, so that the server may
	// replace or remove the file. An error wraps ErrUnavailable: then the file must be left alone.
	// See docs/durability.md, "What the server leaves alone".
	Preserve(ctx context.Context, paths []string) error

	// Flush commits everything handed over so far, also what is still waiting to be quiet.
	Flush(ctx context.Context) error

	State() HistoryState
}

// Op is one operation as the audit tells it.
type Op struct {
	Verb    string // register, send, reply, read, unread, acknowledge, pop, claim, renew, release, presence, project …
	Agent   string // who did it; "" for the server itself
	ID      string // message id, where there is one
	Summary string // one line for people: "GreenCastle -> BlueLake: Plan for /api/users"; never names a bcc recipient
	At      time.Time
	Paths   []string // files written or removed, relative to the tree
	// Written is what became of the files that were written or removed, by path; what is missing here is taken as it is on
	// disk, and so is everything while contents of more than 32 MiB wait for a commit.
	// See invariant I6.
	Written map[string]Written
	// Recovered says that the operation stems from the journal of an interrupted run: it may be in a commit
	// already. It is not, where HEAD lacks one of its paths, or holds another version of one of Revised; else it
	// is left out.
	Recovered bool
	Revised   []string // of a recovered operation: what it replaced or removed and is still as it left it
}

// Written is what an operation made of one of its paths.
type Written struct {
	Data []byte
	Stat tree.FileStat // of the file in its place; one from before its rename, or the zero tree.FileStat, has it read and compared
	Gone bool          // nothing: it removed the file
}

// each returns the operation once for every message id, or as it is where it concerns at most one.
func (o Op) each(ids []string) []Op {
	if len(ids) < 2 {
		return []Op{o}
	}
	var all []Op
	for _, id := range ids {
		one := o
		one.ID, one.Summary = id, o.Agent+" "+id
		one.Paths = slices.DeleteFunc(slices.Clone(o.Paths), func(p string) bool { return format.Locate(p).ID != id })
		one.Revised = slices.DeleteFunc(slices.Clone(o.Revised), func(p string) bool { return format.Locate(p).ID != id })
		all = append(all, one)
	}
	return all
}

// HistoryState says how the audit stands, for health and doctor.
type HistoryState struct {
	Mode       string    // "committing", "waiting" (a merge or rebase, a foreign lock), "detached" (uncommitted until the recorded branch is back), "off"
	Reason     string    // a sentence where Mode is not committing: what is wrong and what to do
	Pending    int       // operations and edited paths not yet in a commit
	LastCommit time.Time // zero when none was made yet
	LastHash   string
}
