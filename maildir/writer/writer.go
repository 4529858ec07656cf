// Package writer is the group commit of one tree: it plans operations, makes their files durable
// together, puts them into place, and hands them to the index and the audit.
//
// Operations (Tx) are written in groups, one group after the other, by one goroutine: it plans and
// stages what is queued, makes it durable, renames it into place, makes that durable, ingests it in one
// transaction, tells the audit and answers. What is queued meanwhile is the next group, so groups grow
// under load by themselves, and a lone caller waits for nobody. A plan may trust the index, which has all
// that was written before the group. Of two operations that decide on the same fact (Tx.Facts), or write
// the same file, the second is planned first in the next group. Edits that others made are ingested
// between groups (Aside), so that nobody indexes half of one. What takes long is not done by that
// goroutine: an operation that replaces what somebody else wrote leaves the group until that is in the
// audit (save). The journal says durably what a group is about to do, so that after a crash each
// operation is whole or absent.
//
// A Writer knows no mailbox: what it needs of the project whose tree it writes is the interface
// Owner. docs/durability.md, "How one operation is written", tells the whole way.
package writer

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// Config is what a Writer works with.
type Config struct {
	Tree     *tree.Tree
	Owner    Owner
	Limits   *Limits // shared by the writers of a store
	Key      []byte  // authenticates the records of the journal
	Now      func() time.Time
	Log      *slog.Logger
	Patience time.Duration     // how long a caller waits for the disk
	Step     func(name string) // called before and after whatever a crash may fall between; nil: not at all (fault tests)

	// Observe is called with what Do did, by its goroutine: the operation, how long it took and the
	// error that Do returns. Of one that was not answered op has no more than the caller gave. nil:
	// nobody wants to know.
	Observe func(op Op, took time.Duration, err error)
}

// Owner is what a Writer needs of the project whose tree it writes.
type Owner interface {
	// Ingest brings the index level with the files of a group, which the writer found in their
	// places as written says; what is missing there the index looks at itself.
	Ingest(ctx context.Context, paths []string, written map[string]tree.Written) error

	// Level brings the index level with paths that somebody else changed. An error says that one
	// could not be looked at.
	Level(ctx context.Context, paths []string) error

	// Sure refuses a decision that what cannot be looked at just now may forbid; nil where everything
	// can be.
	Sure() error

	// Record takes operations that are durable and ingested into the audit. It calls done once they
	// are in a commit.
	Record(ops []Op, done func())

	// Preserve returns once the present content of each path that exists is in the audit. After an
	// error the files must be left alone.
	Preserve(ctx context.Context, paths []string) error

	// Edited says that somebody else may have changed files at paths and, with scan, anywhere.
	Edited(paths []string, scan bool)

	// Failed tells of an operation that was under way and was taken back.
	Failed(op *Op)
}

// Limits divides descriptors among the groups of a store.
type Limits struct {
	groups  chan struct{} // a token for each turn under way
	Folders int           // how many folders one group, or one who looks, holds open
}

// NewLimits returns the limits of a store that may have so many files open. Half of them are left
// to those who read. One project has one group under way.
func NewLimits(files int) *Limits {
	folders := min(max(files/64, 8), tree.MostFolders)
	return &Limits{make(chan struct{}, min(max(files/2/(folders+4), 4), 64)), folders}
}

// Writer writes one tree. Safe for concurrent use.
type Writer struct {
	Config
	journal   *journal
	recovered []recoveredGroup

	queue   chan *Tx      // to be planned
	stopped chan struct{} // closed when Run has ended
	wake    chan struct{} // something waits in again or asides
	number  atomic.Uint64 // of the newest group
	failing failing
	echoes  echoes

	mu      sync.Mutex
	again   []*Tx                                  // to be planned in the next group
	asides  []func(context.Context, *tree.Changer) // to be called when the present group has ended
	saves   int                                    // operations that wait until what they replace is in the audit
	own     map[string]ownWrite                    // what groups not yet committed wrote
	writing map[string]bool                        // files of the present group
	began   time.Time                              // when the first operation of the present group was planned; zero: there is none
}

// Open makes the tree whole after a crash and opens its journal. It writes nothing else until Run
// runs; Resume tells the audit what an interrupted run has left. Errors: those of the file system.
func Open(cfg Config) (*Writer, error) {
	j, groups, err := recoverTree(cfg.Tree, cfg.Key, cfg.Log)
	if err != nil {
		return nil, err
	}
	w := &Writer{
		Config:    cfg,
		journal:   j,
		recovered: groups,
		queue:     make(chan *Tx, MaxGroup),
		stopped:   make(chan struct{}),
		wake:      make(chan struct{}, 1),
		own:       map[string]ownWrite{},
		writing:   map[string]bool{},
	}
	newest := uint64(cfg.Now().UnixMicro()) // no number of an earlier run comes again
	for _, g := range groups {
		newest = max(newest, g.number)
	}
	w.number.Store(newest)
	return w, nil
}

// Resume hands the audit what an interrupted run had done and perhaps not committed.
func (w *Writer) Resume() {
	for _, g := range w.recovered {
		w.Owner.Record(g.ops, func() { w.committed(g.number, true) })
	}
	w.recovered = nil
}

var errStuck = &refusal.Error{
	What: refusal.Unavailable("The disk does not answer; whether the operation still happens is not known. {look closer}, and look " +
		"before you try it again (a message with an idempotency key can be sent again, it is delivered once)."),
}

// ErrStopped refuses what comes when the writer is told to stop, or has ended.
var ErrStopped error = &refusal.Error{
	What: refusal.Unavailable("The server is stopping; nothing was changed. Try again when it is back."),
}

// Do hands an operation to the writer and waits for its answer. When it returns nil the files are
// durable and indexed. When ctx ends first, or the disk does not answer for Config.Patience, the
// operation may still happen, unless it was not planned yet. Errors: those of tx.Plan; refusals for
// the faults of the disk; ErrStopped.
func (w *Writer) Do(ctx context.Context, tx *Tx) error {
	if w.Observe == nil {
		return w.do(ctx, tx)
	}
	began, op := time.Now(), tx.Op
	err := w.do(ctx, tx)
	select {
	case <-tx.done:
		op = tx.Op
	default: // it may still be worked on
	}
	w.Observe(op, time.Since(began), err)
	return err
}

// do is Do, unobserved.
func (w *Writer) do(ctx context.Context, tx *Tx) error {
	ctx, cancel := context.WithTimeoutCause(ctx, w.Patience, errStuck)
	defer cancel()
	tx.ctx, tx.done = ctx, make(chan struct{})
	select {
	case w.queue <- tx:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.stopped:
		return ErrStopped
	}
	select {
	case <-tx.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.stopped:
		select {
		case <-tx.done:
		default:
			return ErrStopped
		}
	}
	return refusal.Disk(tx.err)
}

// Stopped is closed when Run has ended.
func (w *Writer) Stopped() <-chan struct{} { return w.stopped }

// noteGroup makes the files of an operation those of the present group.
func (w *Writer) noteGroup(tx *Tx) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.began.IsZero() {
		w.began = time.Now()
	}
	for _, f := range tx.Writes {
		w.writing[f.Path] = true
	}
}

// endGroup ends the present group, where there is one.
func (w *Writer) endGroup() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.writing)
	w.began = time.Time{}
}

// Writes reports whether an operation under way writes a file, or has written it. It goes on to say so
// until the audit was told.
func (w *Writer) Writes(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writing[path]
}

// Stalled is how long the present group has been waiting for the disk: more than some seconds mean that
// it does not answer.
func (w *Writer) Stalled() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.began.IsZero() {
		return 0
	}
	return time.Since(w.began)
}

// Failing is why the newest operation that reached the disk failed there, as ErrUnavailable; nil
// when it did not, or that is over a minute ago.
func (w *Writer) Failing() error { return refusal.Disk(w.failing.newest()) }
