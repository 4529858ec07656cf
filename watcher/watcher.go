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

// Config says what to watch and whom to tell. Root and OnBatch are needed; the
// zero value of every other field is its default.
type Config struct {
	// Root is the folder to watch: absolute. It may be missing (degraded until
	// it is there), and be a symlink (the only one that is followed).
	Root string

	// Skip says which paths are neither watched nor reported; nil: none. The
	// path is slash separated and relative to Root. Nothing below a skipped
	// folder is asked about. A path that is gone is asked about with dir false,
	// since nobody knows what it was. Called from one goroutine.
	Skip func(rel string, dir bool) bool

	// OnBatch gets the batches, from one goroutine, one at a time. It may block:
	// events are drained meanwhile and come with the next batch. Its context is
	// Run's. The batch is the callee's to keep.
	OnBatch func(ctx context.Context, b Batch)

	// Log gets one line when the watch degrades and when it stands again, and
	// one for each folder that cannot be watched or listed; nil: no log.
	Log *slog.Logger

	// Rename is the settle time of a path only created, renamed or removed: long
	// enough to gather what one command renames, short against the 10 ms in
	// which a saved file should be searchable. Default 3 ms.
	Rename time.Duration

	// Write is the quiet time of a path being written in place, whose half
	// should not be read, where it cannot be told that its writer has closed
	// it: after that it is Rename. Default 30 ms.
	Write time.Duration

	// Longest is when a path under constant change is reported anyway, counted
	// from its first event. Default 150 ms, of 250 for the whole way: docs/architecture.md,
	// "From a save to the index".
	Longest time.Duration

	// Poll is how often a Scan is asked for, and mending tried, while the watch
	// is incomplete. Default 2 s.
	Poll time.Duration
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

// Watcher watches one folder. Made by New, run once by Run; Ready and State may
// be called at any time from any goroutine.
type Watcher struct {
	cfg     Config
	queue   *queue
	waiting *waiting
	status  status
	sys     system

	ready     chan struct{}
	readyOnce sync.Once
}

// system is what the watcher asks of the operating system and a test may refuse.
type system struct {
	open func() (*fsnotify.Watcher, error)               // an inotify instance
	add  func(fs *fsnotify.Watcher, folder string) error // a watch
	read func()                                          // called before each event is read
}

// New returns a watcher that has started nothing and holds nothing: one that is
// never run needs no closing.
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

// Run watches until ctx ends, then returns nil, after OnBatch has returned and
// everything is closed. Nothing else ends it: overflow, missing watches and a
// missing root degrade it (see State). Paths not yet reported when ctx ends are
// dropped; the comparison at the next start finds them. Run is called once.
func (w *Watcher) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { w.dispatch(ctx) })
	w.keep(ctx)
	wg.Wait()
	w.stopped()
	return nil
}

// Ready returns a channel that is closed once the first full set of watches
// stands, or it is known that it cannot (State says degraded). What changes
// after that is reported; what is there already is not.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// keep holds one session after the other until ctx ends. A session that stood
// is followed at once, for a folder replaced by another; one that did not, when
// Poll has passed.
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

// rel returns the path of an event relative to Root, "." for Root itself, and
// whether it is in Root at all.
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

// abs returns the path that rel names.
func (w *Watcher) abs(rel string) string {
	if rel == "." {
		return w.cfg.Root
	}
	return w.cfg.Root + "/" + rel
}
