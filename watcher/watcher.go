package watcher

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Config says what to watch and whom to notify. Root and OnBatch are required. The zero value of any other field
// means its default.
type Config struct {
	// Root is the absolute path of the folder to watch. If the folder is missing, the watch is degraded until the
	// folder exists. Root may be a symbolic link, the only one that the watcher follows.
	Root string

	// Skip reports which paths are neither watched nor reported; nil means none. The path is slash separated and
	// relative to Root. Skip is not called for paths below a skipped folder. If a path is gone, dir is false,
	// because the kind of the path is unknown. Skip is called from one goroutine.
	Skip func(rel string, dir bool) bool

	// OnBatch receives the batches, from one goroutine, one at a time. OnBatch may block. Meanwhile, events are still
	// drained, and are delivered with the next batch. The context is Run's. OnBatch may keep the batch.
	OnBatch func(ctx context.Context, b Batch)

	// Log gets one line when the watch degrades, one when it is complete again, and one for each folder that cannot
	// be watched or listed. If Log is nil, nothing is logged.
	Log *slog.Logger

	// Rename is the settle time of a path that was only created, renamed or removed. It is long enough to collect the
	// renames of one command, and short compared with the 10 ms in which a saved file should be searchable. The default
	// is 3 ms.
	Rename time.Duration

	// Write is the quiet time of a path that is being written in place, so that no half-written file is read. It
	// applies if the system cannot tell that the writer has closed the file. Otherwise the path is due Rename after the
	// writer has closed it. The default is 30 ms.
	Write time.Duration

	// Longest is the maximum time between the first event of a path that keeps changing and the path's report. The
	// default is 150 ms, out of 250 ms for the whole way from a save to the index. See docs/architecture.md, "From a
	// save to the index".
	Longest time.Duration

	// Poll is how often an incomplete watch asks for a Scan and tries to repair itself. The default is 2 s.
	Poll time.Duration

	// NoEvents is for a file system that reports no changes. Instead of watching, the watcher asks for a Scan every
	// Poll. State says polling.
	NoEvents bool
}

// withDefaults returns c with every unset field set.
func (c Config) withDefaults() Config {
	fill := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	fill(&c.Rename, 3*time.Millisecond)
	fill(&c.Write, 30*time.Millisecond)
	fill(&c.Longest, 150*time.Millisecond)
	fill(&c.Poll, 2*time.Second)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Skip == nil {
		c.Skip = func(string, bool) bool { return false }
	}
	c.Root = filepath.Clean(c.Root)
	return c
}

// Watcher watches one folder. New creates it, and Run runs it once. Ready and State may be called at any time from
// any goroutine.
type Watcher struct {
	cfg     Config
	queue   *queue
	waiting *waiting
	status  status
	sys     system

	ready     chan struct{}
	readyOnce sync.Once
}

// system holds the calls to the operating system. Tests replace it.
type system struct {
	open func() (*fsnotify.Watcher, error)               // an inotify instance
	add  func(fs *fsnotify.Watcher, folder string) error // a watch
	read func()                                          // called before each event is read
}

// New returns a watcher. It starts nothing and keeps nothing open, so a watcher that never runs needs no closing.
func New(cfg Config) *Watcher {
	cfg = cfg.withDefaults()
	waiting := newWaiting(cfg)
	waiting.closed = func(rel string) bool { return written(cfg.Root, rel) }
	return &Watcher{
		cfg:     cfg,
		queue:   newQueue(),
		waiting: waiting,
		status:  status{mode: starting},
		ready:   make(chan struct{}),
		sys: system{
			open: fsnotify.NewWatcher,
			add:  func(fs *fsnotify.Watcher, folder string) error { return fs.Add(folder) },
			read: func() {},
		},
	}
}

// Run watches until ctx ends. It returns nil after OnBatch has returned and everything is closed. Nothing else ends
// Run. Overflow, missing watches and a missing root only degrade the watch (see State). When ctx ends, Run drops
// unreported paths. The comparison at the next start finds those changes. Run may be called only once.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.stopped()
	if w.cfg.NoEvents {
		w.poll(ctx)
		return nil
	}
	var wg sync.WaitGroup
	wg.Go(func() { w.dispatch(ctx) })
	w.keep(ctx)
	wg.Wait()
	return nil
}

// Ready returns a channel that is closed once the first full set of watches is in place, or once that has turned out to
// be impossible (State says degraded). The watcher reports changes made after that moment, not files that already
// exist.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// keep runs one session after another until ctx ends. If the last session's watch was complete, the next session
// starts at once, for a folder that replaced the root. Otherwise it starts after Poll.
func (w *Watcher) keep(ctx context.Context) {
	for {
		stood, err := w.session(ctx)
		if ctx.Err() != nil {
			return
		}
		w.degrade(err.Error())
		w.queue.reset()
		w.waiting.askScan()
		if stood {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.cfg.Poll):
		}
	}
}

// rel returns the path of an event relative to Root, "." for Root itself, and whether it is in Root at all.
func (w *Watcher) rel(name string) (string, bool) {
	below, ok := strings.CutPrefix(name, w.cfg.Root)
	switch {
	case !ok:
		return "", false
	case below == "":
		return ".", true
	}
	return strings.CutPrefix(below, "/")
}

// abs returns the absolute path of rel.
func (w *Watcher) abs(rel string) string {
	if rel == "." {
		return w.cfg.Root
	}
	return w.cfg.Root + "/" + rel
}
