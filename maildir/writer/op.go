package writer

import (
	"context"
	"slices"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// Merge is the commit of another machine whose changes an operation applies. The zero Merge means that there is
// none.
type Merge struct {
	Commit string `json:"commit"`         // becomes a parent of the operation's commit,
	More   bool   `json:"more,omitempty"` // unless further operations apply the rest of the changes
	Onto   string `json:"onto,omitempty"` // the commit of this machine with which Commit was compared
}

// Op is one operation as the audit sees it.
type Op struct {
	Verb    string // register, send, reply, read, unread, acknowledge, pop, claim, renew, release, presence, project …
	Agent   string // the agent that requested it; "" for the server itself
	ID      string // message id, if the operation has one
	Marks   string // id of another message that it marks: the message that a reply answers
	Door    string // the channel, as in format.Through; "" for the server itself
	Step    string // the step that it belongs to, as in format.InStep; "" for none
	Summary string // one readable line: "GreenCastle -> BlueLake: Plan for /api/users"; never names a bcc recipient
	At      time.Time
	Waited  time.Duration // for a pop: the age of the message that it takes
	Merges  Merge
	Paths   []string // tracked files written or removed, relative to the tree: see tracked

	// Written is the result for each file written or removed, by path. If a path is missing here, the audit reads
	// the file on disk. It also reads the files on disk while contents of more than 32 MiB wait for a commit
	// (invariant I6).
	Written map[string]tree.Written

	// Recovered says that the operation comes from the journal of an interrupted run and may be in a commit
	// already. If HEAD lacks one of its paths, or has a different version of a path in Revised, the operation is
	// not in a commit. Otherwise the audit skips the operation.
	Recovered bool
	Revised   []string // for a recovered operation: paths that it replaced or removed and that are still unchanged
}

// tracked reports whether the index and the audit track a file. They get no information about an operation's other
// files, such as those in format.QueueDir.
func tracked(path string) bool { return format.Locate(path).Kind != format.KindIgnored }

// each returns one copy of the operation for each message id, or the operation itself if it has at most one
// id.
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

// Tx is an operation of the writer: a transaction that writes either all of its files or none.
type Tx struct {
	Op
	IDs   []string // for an operation on several messages: the history has a line for each
	Facts []string // facts that it decides on: no two operations of a group decide on the same fact
	Alone bool     // it decides on anything that other operations write: its group has no other operation
	Sure  bool     // it is refused (Owner.Sure) while some file in the tree cannot be read

	// Plan decides what the operation writes. It runs in the goroutine of Run, possibly several times; each
	// time nothing has been written. It calls Create, Group.Replace and Group.Remove. If it calls none of
	// them and returns no error, the operation has nothing to do. If it returns an error of Group.Behind,
	// it is called again later.
	Plan func(g *Group) error

	// After, which Plan may set, is called in the goroutine of Run once the operation is durable and indexed,
	// whether or not its caller still waits. It must not block.
	After func()

	Writes []*tree.Write // the files that Plan decided to write

	ctx     context.Context // of the caller; nil for the owner's own operations
	behind  []string        // paths where an earlier plan found the tree ahead of the index
	tries   int
	unsaved map[string]string // SHA-256 by path of files that the plan would replace and that the audit may lack
	saved   map[string]string // SHA-256 by path of files that the plan would replace and that the audit has
	place   int               // index in the journal record
	err     error
	done    chan struct{} // closed with the answer; nil if no caller waits
}

// Create plans a new file; the path must not exist.
func (tx *Tx) Create(path string, data []byte) {
	tx.Writes = append(tx.Writes, &tree.Write{Path: path, Data: data, Sum: tree.SHA256(data)})
}

// gone returns why the caller stopped waiting for the operation. It returns nil if the caller still waits
// or if there is no caller.
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
