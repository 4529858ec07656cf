package writer

import (
	"context"
	"slices"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// Op is one operation as the audit tells it.
type Op struct {
	Verb    string // register, send, reply, read, unread, acknowledge, pop, claim, renew, release, presence, project …
	Agent   string // who did it; "" for the server itself
	ID      string // message id, where there is one
	Door    string // through which it came, as of format.Through; "" for the server's own
	Summary string // one line for people: "GreenCastle -> BlueLake: Plan for /api/users"; never names a bcc recipient
	At      time.Time
	Paths   []string // files written or removed, relative to the tree

	// Written is what became of the files that were written or removed, by path. What is missing
	// here is taken as it is on disk, and so is everything while contents of more than 32 MiB wait
	// for a commit (invariant I6).
	Written map[string]tree.Written

	// Recovered says that the operation stems from the journal of an interrupted run: it may be in
	// a commit already. It is not, where HEAD lacks one of its paths, or holds another version of
	// one of Revised; else it is left out.
	Recovered bool
	Revised   []string // of a recovered operation: what it replaced or removed and is still as it left it
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

// Tx is one operation on its way through the writer: a transaction of files, which are all written
// or none.
type Tx struct {
	Op
	IDs   []string // of an operation on several messages: the history has a line for each
	Facts []string // what it decides on: no two operations of a group decide on the same
	Alone bool     // it decides on what others write anywhere: no other operation is in its group
	Sure  bool     // it is refused (Owner.Sure) while something in the tree cannot be looked at

	// Plan decides what the operation writes. It runs in the goroutine of Run, perhaps several
	// times, each time with nothing written. It calls Create, Group.Replace and Group.Remove; one
	// that calls none of them and returns no error is an operation that had nothing to do. An error
	// of Group.Behind asks for another planning.
	Plan func(g *Group) error

	Writes []*tree.Write // what the operation writes, by its plan

	ctx     context.Context // of the caller; nil for the owner's own
	behind  []string        // where an earlier plan found the tree ahead of the index
	tries   int
	unsaved map[string]string // what its plan would replace and is not known to be in the audit: the SHA-256 by path
	saved   map[string]string // the same of what is
	place   int               // in the journal record
	err     error
	done    chan struct{} // closed with the answer; nil where nobody waits
}

// Create plans a file that must not exist yet.
func (tx *Tx) Create(path string, data []byte) {
	tx.Writes = append(tx.Writes, &tree.Write{Path: path, Data: data, Sum: tree.SHA256(data)})
}

// gone is why nobody waits for the operation any more; nil where somebody does, or nobody ever did.
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
