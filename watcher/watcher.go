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

// Config configures a Watcher. Root and OnBatch are required. The zero value of any other field selects its default.
type Config struct {
	// Root is the absolute path of the folder to watch. If the folder is missing, the watch is degraded until the
	// folder exists. Root may be a symbolic link. The watcher follows no other links.
	Root string

	// Skip reports whether to ignore a path. Ignored paths are neither watched nor reported. If Skip is nil, no path is
	// ignored. The path is slash-separated and relative to Root. Skip is not called for paths below a skipped folder.
	// If a path is gone, dir is false, because the kind of the path is unknown. Skip is called from one goroutine.
	Skip func(rel string, dir bool) bool

	// OnBatch receives the batches, one at a time, from one goroutine. OnBatch may block. Events that arrive while
	// OnBatch is running are reported in a later batch. OnBatch gets Run's context, and may keep the batch.
	OnBatch func(ctx context.Context, b Batch)

	// Log gets one line when the watch degrades, one when it is complete again, and one for each folder that cannot
	// be watched or listed. If Log is nil, nothing is logged.
	Log *slog.Logger

	// Rename is the quiet time of a path that was only created, renamed or removed. It should be long enough to collect
	// the renames of one command, and short compared with the 10 ms within which a saved file should be searchable. The
	// default is 3 ms.
	Rename time.Duration

	// Write is the quiet time of a path that is being written in place, so that no half-written file is read. It
	// applies if the system cannot tell whether the writer has closed the file. Otherwise, the path is due Rename after
	// the writer has closed it. The default is 30 ms.
	Write time.Duration

	// Longest is the maximum time from the first event on a path until the path is reported, even if it keeps changing.
	// The default is 150 ms. In total, it may take 250 ms until a saved file is indexed. See
	// docs/explanation/architecture.md, "From a save to the index".
	Longest time.Duration

	// Poll is how often an incomplete watch asks for a Scan and tries to repair itself. The default is 2 s.
	Poll time.Duration

	// Set NoEvents for a file system that reports no changes. Instead of watching, the watcher sends a Scan every Poll,
	// and State reports "polling".
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

// system contains the calls to the operating system. Tests replace them.
type system struct {
	open func() (*fsnotify.Watcher, error)               // opens an inotify instance
	add  func(fs *fsnotify.Watcher, folder string) error // adds a watch
	read func()                                          // called before each event is read
}

// New returns a watcher. New does not start or open anything, so a watcher that never runs does not have to be closed.
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

// Run watches until ctx is done. It then returns nil, after OnBatch has returned and everything is closed. Overflow,
// missing watches and a missing root do not end Run, but only degrade the watch (see State). When ctx is done, Run
// drops unreported paths. The comparison at the next start finds those changes. Run may be called only once.
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

// Ready returns a channel that is closed once all folders are watched, or once it turns out that watching all of them
// is impossible (State then reports "degraded"). The watcher reports changes made after that moment, not files that
// already exist.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// keep runs one session after another until ctx is done. If the last session's watch was complete at some point, the
// next session starts immediately, because another folder may have replaced the root. Otherwise, it starts after Poll.
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

// rel returns an event's path relative to Root ("." for Root itself), and reports whether the path is Root or below
// it.
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
