// Package store maintains one tree. It recovers the tree after a crash, writes to it, and records every operation in
// the history. It also keeps the index up to date with changes by the server and by other programs. The package does
// not depend on mail: the interface Mail handles the meaning of changes.
package store

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Config configures a Keeper.
type Config struct {
	Slug   string // slug of the tree's project
	Tree   *tree.Tree
	Mail   Mail
	Limits *Limits // shared by all keepers in a store
	Log    *slog.Logger
	Now    func() time.Time
	Writer writer.Config // the caller sets Key, Patience, Step and Observe; Open sets the other fields
	// OpenHistory opens the history of the keeper's tree, and creates the repository if it is missing. It is called
	// after the keeper has opened its writer.
	OpenHistory func(k *Keeper) (history.Log, error)
}

// Mail receives reports about changes to the tree.
type Mail interface {
	// Noticed reports changes that the index has ingested.
	Noticed(changes []index.Change)
	// Untimed reports the paths of marks that have no time.
	Untimed(paths []string)
	// Saved reports paths that other programs may have changed. It also reports the changes that the index has ingested
	// from these paths.
	Saved(paths []string, changes []index.Change)
	// Compared is called after each comparison of the whole tree. Its error is logged.
	Compared(ctx context.Context) error
	// Hourly is called every hour.
	Hourly()
	// Failed reports that an operation in progress was undone.
	Failed(op *writer.Op)
}

// Limits contains limits that a store's keepers share. Use NewLimits to create them.
type Limits struct {
	writer    *writer.Limits
	comparing chan struct{} // tokens for comparing a whole tree
	looking   chan struct{} // tokens for ingesting edits
}

// NewLimits returns the limits for a store whose operations in progress may use the given number of file
// descriptors.
func NewLimits(files int) *Limits {
	return &Limits{writer.NewLimits(files), make(chan struct{}, atOnce), make(chan struct{}, atOnce)}
}

// Folders returns how many folders one reader may keep open.
func (l *Limits) Folders() int { return l.writer.Folders }

// Keeper maintains one tree. It is safe for concurrent use.
type Keeper struct {
	Config
	Writer  *writer.Writer
	History history.Log

	index  index.Index
	doubt  chan struct{} // wakes compare when events were lost or a comparison was requested
	faults faults
	alike  []string // files from edits.alike that could not be ingested yet; used only in the writer's Run

	mu       sync.Mutex
	edited   map[string]bool // paths reported by the watcher but not ingested yet
	backlog  []edit          // earlier edits that were too many to ingest at once; sorted
	scanned  bool            // a comparison has finished, so files that the writer wrote recently must be checked, too
	asked    bool            // the writer has been asked to ingest edited and backlog
	rescan   []chan error    // callers waiting for a comparison of the whole tree
	compared []chan error    // callers to notify once edited and backlog are ingested, because their comparison is done
}

// Open recovers the tree after a crash, and opens its writer and its history. It starts nothing. It returns errors from
// the file system and from OpenHistory.
func Open(cfg Config) (*Keeper, error) {
	k := &Keeper{Config: cfg, doubt: make(chan struct{}, 1), edited: map[string]bool{}}
	w := cfg.Writer
	w.Tree, w.Owner, w.Limits, w.Now, w.Log = cfg.Tree, owner{k}, cfg.Limits.writer, cfg.Now, cfg.Log
	var err error
	if k.Writer, err = writer.Open(w); err != nil {
		return nil, err
	}
	if k.History, err = cfg.OpenHistory(k); err != nil {
		return nil, err
	}
	k.Writer.Resume()
	return k, nil
}

// Attach gives the keeper its index, brings the index up to date with the tree, and returns the changes. It must be
// called before Run. It does not report the changes to Mail, except for marks without a time. The function progress is
// called with the number of files seen so far, and may be nil. Attach returns any error from the index. Even after an
// error, the keeper has the index.
func (k *Keeper) Attach(ctx context.Context, to index.Index, progress func(files int)) ([]index.Change, error) {
	k.index = to
	if err := k.index.Attach(ctx, k.Slug, k.Tree); err != nil {
		return nil, err
	}
	in, err := k.index.Reconcile(ctx, k.Slug, progress)
	if err != nil {
		return nil, err
	}
	k.noteUnreadable(nil, in.Unreadable)
	k.noteEdits(in.Changes)
	k.Mail.Untimed(in.Untimed)
	k.completeGitFiles(ctx)
	k.History.RecordEdits(OwnFiles)
	return in.Changes, nil
}

// Run runs the tree's writer, its history, and the comparison of the tree with the index. It returns when ctx has
// ended, the writer has finished all accepted operations, and the history is up to date.
func (k *Keeper) Run(ctx context.Context) {
	recording, stopRecording := context.WithCancel(context.WithoutCancel(ctx)) // the history must stop last
	var beside sync.WaitGroup
	beside.Go(func() {
		if err := k.History.Run(recording); err != nil {
			k.Log.Error("the server has stopped recording the history", "error", err)
		}
	})
	beside.Go(func() { k.compare(ctx) })
	k.Writer.Run(ctx)
	stopRecording()
	beside.Wait()
}

// owner implements writer.Owner for a keeper's writer.
type owner struct{ *Keeper }

// Ingest brings the index up to date with a group's files. See writer.Owner.
func (o owner) Ingest(ctx context.Context, paths []string, written map[string]tree.Written) error {
	in, err := o.index.Ingest(ctx, o.Slug, paths, written)
	if err != nil {
		return err
	}
	o.noteUnreadable(paths, in.Unreadable)
	o.Mail.Noticed(in.Changes)
	return nil
}

// Level brings the index up to date at the given paths. See writer.Owner.
func (o owner) Level(ctx context.Context, paths []string) error {
	unread, err := o.ingest(ctx, paths)
	if err == nil && len(unread) > 0 {
		err = unreadableError(unread[0])
	}
	return err
}

// Record adds operations to the history. See writer.Owner.
func (o owner) Record(ops []writer.Op, done func()) { o.History.Record(ops, done) }

// Preserve adds the content of the files at paths to the history. See writer.Owner.
func (o owner) Preserve(ctx context.Context, paths []string) error {
	return o.History.Preserve(ctx, paths)
}

// Failed reports an operation that was undone. See writer.Owner.
func (o owner) Failed(op *writer.Op) { o.Mail.Failed(op) }
