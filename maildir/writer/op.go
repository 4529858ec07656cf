package writer

import (
	"context"
	"slices"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// Merge is another machine's commit whose changes an operation applies. The zero Merge means that there is none.
type Merge struct {
	Commit string `json:"commit"`         // becomes a parent of the operation's commit, unless More is set
	More   bool   `json:"more,omitempty"` // other operations apply the rest of the changes
	Onto   string `json:"onto,omitempty"` // this machine's commit with which Commit was compared
}

// Op is one operation as the history sees it.
type Op struct {
	Verb    string // register, send, reply, read, unread, acknowledge, pop, claim, renew, release, presence, project …
	Agent   string // the agent that requested the operation; "" for the server itself
	ID      string // message id, if the operation is about a message
	Marks   string // id of another message that the operation marks: for a reply, the message that it answers
	Door    string // the channel, as in format.Through; "" for the server itself
	Step    string // the step that the operation belongs to, as in format.InStep; "" for none
	Summary string // one readable line: "GreenCastle -> BlueLake: Plan for /api/users"; never names a bcc recipient
	At      time.Time
	Waited  time.Duration // for a pop: the age of the message that it returns
	Merges  Merge
	Paths   []string // tracked files that were written or removed, relative to the tree: see tracked

	// Written is the result for each file written or removed, by path. If a path is missing here, the history reads the
	// file on disk. It also reads files on disk while more than 32 MiB of content is waiting for a commit (invariant
	// I6).
	Written map[string]tree.Written

	// Recovered means that the operation comes from the journal of an interrupted run, and may already be in a commit.
	// If HEAD lacks one of the operation's paths, or has a different version of a path in Revised, the operation is not
	// in a commit. Otherwise the history skips it.
	Recovered bool
	Revised   []string // for a recovered operation: paths that it replaced or removed, and that have not changed since
}

// tracked reports whether the index and the history track a file. They are not notified about an operation's other
// files, such as those in format.QueueDir.
func tracked(path string) bool { return format.Locate(path).Kind != format.KindIgnored }

// each returns one copy of the operation for each message id, or just the operation if there are fewer than two ids.
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
	IDs   []string // for an operation on several messages; the history has one line for each
	Facts []string // facts on which the operation depends: no two operations in a group depend on the same fact
	Alone bool     // the operation may depend on anything that others write, so its group contains no other operation
	Sure  bool     // the operation is refused (Owner.Sure) while some file in the tree cannot be read

	// Plan decides what the operation writes. It runs in Run's goroutine, possibly several times; each time, nothing
	// has been written yet. It calls Create, Group.Replace and Group.Remove. If it calls none of them and returns no
	// error, there is nothing for the operation to do. If it returns an error from Group.Behind, it is called again
	// later.
	Plan func(g *Group) error

	// After is called in Run's goroutine once the operation is durable and indexed, whether or not the operation's
	// caller is still waiting. Plan may set it. It must not block.
	After func()

	Writes []*tree.Write // the files that Plan decided to write

	ctx     context.Context // the caller's context; nil for the owner's own operations
	behind  []string        // paths where an earlier plan found the tree ahead of the index
	tries   int
	unsaved map[string]string // SHA-256 by path of files that the plan would replace, and that the history may lack
	saved   map[string]string // SHA-256 by path of files that the plan would replace, and that the history has
	place   int               // index in the journal record
	err     error
	done    chan struct{} // closed with the answer; nil if no caller is waiting
}

// Create plans a new file. The path must not exist.
func (tx *Tx) Create(path string, data []byte) {
	tx.Writes = append(tx.Writes, &tree.Write{Path: path, Data: data, Sum: tree.SHA256(data)})
}

// gone returns why the caller stopped waiting for the operation. It returns nil if the caller is still waiting, or if
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
