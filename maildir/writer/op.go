package writer

import (
	"context"
	"slices"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// Merge identifies another machine's commit, if the operation applies changes from such a commit. The zero Merge means
// that the operation does not.
type Merge struct {
	Commit string `json:"commit"`         // becomes a parent of the operation's commit, unless More is set
	More   bool   `json:"more,omitempty"` // other operations apply the remaining changes
	Onto   string `json:"onto,omitempty"` // this machine's commit with which Commit was compared
}

// Op is one operation in the form that the history records.
type Op struct {
	Verb    string // register, send, reply, read, unread, acknowledge, pop, claim, renew, release, presence, project …
	Agent   string // the agent that requested the operation; empty for the server itself
	ID      string // message id, if the operation concerns a message
	Marks   string // id of another message that the operation marks: for a reply, the message that it answers
	Door    string // the channel, as in format.Through; empty for the server itself
	Step    string // the step that the operation belongs to, as in format.InStep; empty if there is none
	Summary string // one readable line: "GreenCastle -> BlueLake: Plan for /api/users"; never names a bcc recipient
	At      time.Time
	Waited  time.Duration // for a pop: the age of the popped message
	Merges  Merge
	Paths   []string // tracked files that were written or removed, relative to the tree (see tracked)

	// Written describes each file that was written or removed, by path. The history reads a file from disk if its path
	// is missing from Written, or while more than 32 MiB of content is waiting to be committed (invariant I6).
	Written map[string]tree.Written

	// Recovered means that the operation comes from the journal of an interrupted run, and may already have been
	// committed. It has not been committed if HEAD lacks one of the operation's paths, or has a different version of a
	// path in Revised. Otherwise, the history skips the operation.
	Recovered bool
	Revised   []string // for a recovered operation: paths that it replaced or removed, and that have not changed since
}

// tracked reports whether the index and the history track the file at path. Operations also write files that neither of
// them tracks, such as those in format.QueueDir.
func tracked(path string) bool { return format.Locate(path).Kind != format.KindIgnored }

// each returns a copy of the operation for each message id. If there are fewer than two ids, it returns only the
// operation itself.
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

// Tx is an operation that the writer carries out: a transaction that writes either all of its files or none.
type Tx struct {
	Op
	IDs   []string // ids of the messages if there are several; the history shows a line for each
	Facts []string // the facts that the operation depends on; a group contains at most one operation for each fact
	Alone bool     // the operation must be the only one in its group, because it may depend on anything
	Sure  bool     // refuse the operation (Owner.Sure) if any file in the tree currently cannot be read

	// Plan decides what the operation writes. It runs in Run's goroutine and may be called several times, always
	// before anything is written. It calls Create, Group.Replace and Group.Remove. If it calls none of them and
	// returns nil, the operation has nothing to do. If it returns an error from Group.Behind, it is called again
	// later.
	Plan func(g *Group) error

	// After is called in Run's goroutine once the operation is durable and indexed, even if the caller is no longer
	// waiting. Plan may set After. The function must not block.
	After func()

	Writes []*tree.Write // the files that Plan decided to write

	ctx     context.Context // the caller's context; nil for the owner's own operations
	behind  []string        // paths where an earlier plan found that the tree is ahead of the index
	tries   int
	unsaved map[string]string // SHA-256, by path, of files to be replaced that the history may lack
	saved   map[string]string // SHA-256, by path, of files to be replaced that the history has
	place   int               // the operation's index in the journal record
	err     error
	done    chan struct{} // closed when the result is known; nil if no caller is waiting
}

// Create plans a new file. The path must not exist.
func (tx *Tx) Create(path string, data []byte) {
	tx.Writes = append(tx.Writes, &tree.Write{Path: path, Data: data, Sum: tree.SHA256(data)})
}

// gone returns the reason why the caller is no longer waiting. It returns nil if the caller is still waiting, or if
// there is no caller.
func (tx *Tx) gone() error {
	if tx.ctx == nil {
		return nil
	}
	return context.Cause(tx.ctx)
}

func (tx *Tx) answer(err error) {
	tx.err = err
	if tx.done != nil {
		close(tx.done)
	}
}
