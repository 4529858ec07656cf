// Package writer implements group commit for one tree: it plans operations, makes their files durable together,
// renames them into place, and passes them to the index and the history.
//
// One goroutine writes operations (Tx) in groups, one group after another. It plans and stages the queued operations,
// makes their files durable, renames them into place, makes the renames durable, ingests the files in one transaction,
// records the operations in the history, and responds to the callers. Operations that are queued meanwhile form the
// next group. Therefore, groups grow under load, while a single caller never waits for others.
//
// A plan can rely on the index, which contains everything written before the group. If two operations depend on the
// same fact (Tx.Facts) or write the same file, the second operation waits, and is planned in the next group. Edits by
// other programs are ingested between groups (Aside), so a plan never sees a half-ingested edit. The goroutine never
// blocks for long: if an operation replaces another program's file, it leaves the group and is planned again once
// that file has been committed (save). The journal durably records what a group is about to do, so that each
// operation is complete or absent after a crash.
//
// A Writer does not depend on mailboxes. It calls the owner of its tree, which is a project, through the interface
// Owner. docs/explanation/durability.md, "How one operation is written", describes all steps.
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

// Config configures a Writer.
type Config struct {
	Tree     *tree.Tree
	Owner    Owner
	Limits   *Limits // shared by all writers in a store
	Key      []byte  // authenticates the journal's records
	Now      func() time.Time
	Log      *slog.Logger
	Patience time.Duration     // how long Do waits for the disk
	Step     func(name string) // for fault tests: called at each point where a crash matters; may be nil

	// Observe is called in Do's goroutine with the operation, how long Do took, and the error that Do returns. If the
	// operation is still in progress, op contains only the fields that the caller set. Observe may be nil.
	Observe func(op Op, took time.Duration, err error)
}

// Owner is the owner of the tree that a Writer writes to: a project.
type Owner interface {
	// Ingest updates the index for a group's files. The argument written contains the states of the files right after
	// the writer's renames. The index reads the files that are missing from written.
	Ingest(ctx context.Context, paths []string, written map[string]tree.Written) error

	// Level updates the index at paths that other programs have changed. It returns an error if a path could not be
	// read.
	Level(ctx context.Context, paths []string) error

	// Sure returns a refusal if any file that could affect a decision currently cannot be read, and nil otherwise.
	Sure() error

	// Record passes durable, indexed operations to the history, which calls done once they have been committed.
	Record(ops []Op, done func())

	// Preserve returns once the current content of each existing file has been committed. After an error, the writer
	// must not change the files.
	Preserve(ctx context.Context, paths []string) error

	// Edited reports that other programs may have changed the files at paths or, if scan is set, any file.
	Edited(paths []string, scan bool)

	// Failed reports that an operation was undone because it failed.
	Failed(op *Op)
}

// Limits divides the available file descriptors among a store's groups.
type Limits struct {
	groups  chan struct{} // one token for each turn in progress
	Folders int           // how many folders a group or a reader may keep open
}

// NewLimits returns the limits for a store that may have at most the given number of files open. Half of them are
// reserved for readers. Each project has at most one group in progress.
func NewLimits(files int) *Limits {
	folders := min(max(files/64, 8), tree.MostFolders)
	return &Limits{make(chan struct{}, min(max(files/2/(folders+4), 4), 64)), folders}
}

// Writer writes operations to one tree. It is safe for concurrent use.
type Writer struct {
	Config
	journal   *journal
	recovered []recoveredGroup

	queue   chan *Tx      // operations to be planned
	stopped chan struct{} // closed when Run has ended
	wake    chan struct{} // receives a value when again or asides has entries
	number  atomic.Uint64 // number of the newest group
	failing failing
	echoes  echoes

	mu      sync.Mutex
	again   []*Tx                                  // operations to plan in the next group
	asides  []func(context.Context, *tree.Changer) // functions to call when the current group has ended
	saves   int                                    // number of calls of save in progress
	own     map[string]ownWrite                    // contents written by uncommitted groups, by path
	writing map[string]bool                        // paths of the files of the current group
	began   time.Time                              // when planning of the current group began; zero if there is none
}

// Open recovers the tree after a crash and opens its journal. After that, the Writer writes nothing until Run is
// called. Resume passes the operations of an interrupted run to the history. Open returns any error from the file
// system.
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
	newest := uint64(cfg.Now().UnixMicro()) // never reuse numbers from earlier runs
	for _, g := range groups {
		newest = max(newest, g.number)
	}
	w.number.Store(newest)
	return w, nil
}

// Resume passes to the history the operations of an interrupted run that may not be in a commit yet.
func (w *Writer) Resume() {
	for _, g := range w.recovered {
		w.Owner.Record(g.ops, func() { w.committed(g.number, true) })
	}
	w.recovered = nil
}

var errStuck = &refusal.Error{
	What: refusal.Unavailable("The disk is not responding, so it is unknown whether the operation will take effect. " +
		"{look closer}, and check the result before you try again (a message with an idempotency key is safe to resend: it " +
		"is delivered once)."),
}

// ErrStopped is the refusal for operations when the writer is stopping or has stopped.
var ErrStopped error = &refusal.Error{
	What: refusal.Unavailable("The server is stopping; nothing was changed. Try again when it is running again."),
}

// Do hands an operation to the writer and waits for the result. If Do returns nil, the files are durable and indexed.
// If ctx ends first, or the disk does not respond within Config.Patience, Do returns an error, but an operation that
// was already planned may still be carried out. Do returns errors from tx.Plan, refusals for disk faults, or
// ErrStopped.
func (w *Writer) Do(ctx context.Context, tx *Tx) error {
	if w.Observe == nil {
		return w.do(ctx, tx)
	}
	began, op := time.Now(), tx.Op
	err := w.do(ctx, tx)
	select {
	case <-tx.done:
		op = tx.Op
	default: // the writer may still be using tx
	}
	w.Observe(op, time.Since(began), err)
	return err
}

// do is like Do, but does not call Observe.
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

// Stopped returns a channel that is closed when Run has ended.
func (w *Writer) Stopped() <-chan struct{} { return w.stopped }

// noteGroup records that the operation's files belong to the current group.
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

// endGroup ends the current group, if there is one.
func (w *Writer) endGroup() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.writing)
	w.began = time.Time{}
}

// Writes reports whether an operation in progress writes the file at path. An operation is in progress until it has
// been recorded in the history.
func (w *Writer) Writes(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writing[path]
}

// Stalled returns how long the current group has been in progress. If that is more than a few seconds, the disk is
// not responding.
func (w *Writer) Stalled() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.began.IsZero() {
		return 0
	}
	return time.Since(w.began)
}

// Failing returns the error of the most recent operation that reached the disk, converted to an ErrUnavailable. It
// returns nil if that operation succeeded, or failed more than a minute ago.
func (w *Writer) Failing() error { return refusal.Disk(w.failing.newest()) }
