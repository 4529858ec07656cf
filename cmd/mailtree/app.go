package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"mailtree/gateway"
	"mailtree/gateway/spool"
	"mailtree/indexer"
	"mailtree/maildir"
	"mailtree/maildir/gitlog"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/media/cwebp"
	"mailtree/maildir/store"
	"mailtree/maildir/storedir"
	"mailtree/maildir/summary/command"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
	"mailtree/mcp/socket"
	"mailtree/notify"
	"mailtree/watcher"
	"mailtree/watcher/hook"
)

// app is an open store with all its parts. Outside tests, only this file connects the index, the history, the watcher
// and package maildir.
type app struct {
	cfg   *config
	log   *slog.Logger
	store *maildir.Store
	index *indexer.Index

	sockets []*socket.Listener // the store's own socket, and the socket for other OS users

	metrics *metrics
	shown   *activity // nil if operations are not shown

	watcher *watcher.Watcher // a single inotify instance watches all trees
	hooks   *hook.Runner

	looks notify.Looks // when the user's screens last showed each thread

	outgoing *gateway.Outgoing
	spool    *spool.Spool // holds mail that is being received
}

// testStep, if set, is called at every step of the writers and histories, and before each batch from the watcher. Only
// tests set testStep. They use it to pause the program at a step.
var testStep func(name string)

// observe counts an operation and shows it. It implements maildir.Config.Observe.
func (a *app) observe(op writer.Op, took time.Duration, err error) {
	a.metrics.observe(op, took, err)
	a.shown.observe(op, took, err)
}

// openApp acquires the store's lock and opens the index, the history and the projects. It starts neither the watcher
// nor the servers.
func openApp(ctx context.Context, cfg *config, log *slog.Logger, progress func(project string, files int)) (*app, error) {
	a := &app{cfg: cfg, log: log, metrics: newMetrics()}
	var listenErr error
	files := descriptors()
	share := gitlog.NewShare(min(max(files/128, 1), 16))
	attachments := cfg.Attachments
	attachments.CodePhoto = codePhoto()
	a.outgoing = gateway.NewOutgoing(&cfg.Gateway, cfg.Domains[0], log)
	store, err := maildir.Open(ctx, maildir.Config{
		Root:         cfg.Store,
		MaxFile:      cfg.MaxMessage,
		MaxFanout:    cfg.MaxFanout,
		MaxProjects:  cfg.MaxProjects,
		Scope:        cfg.Scope,
		Files:        files / 2,
		MailboxDepth: cfg.MailboxDepth,
		Attachments:  attachments,
		Domains:      cfg.Domains,
		Outside:      maildir.Outside{Allow: cfg.Gateway.Allow, Rate: cfg.Gateway.Rate, Queued: a.outgoing.Queued},
		Refine:       refine(cfg),
		SyncInterval: cfg.SyncInterval,
		ClaimAlone:   cfg.ClaimAlone,
		Clone:        gitlog.Clone,
		Observe:      a.observe,
		Log:          log,
		Progress:     progress,
		Step:         cfg.stepOr(testStep),
		Now:          cfg.now,
		OpenHistory: func(k *store.Keeper) (history.Log, error) {
			return openHistory(cfg, log, k, share)
		},
		OpenIndex: func(ctx context.Context, trees map[string]*tree.Tree) (index.Index, error) {
			// Listen as soon as this process holds the lock. A process that fails to acquire the lock can then connect
			// to the socket and wait there while the index is built.
			if listenErr = a.listen(ctx); listenErr != nil {
				return nil, listenErr
			}
			x, err := openIndex(ctx, cfg, log, trees, progress)
			a.index = x
			return x, err
		},
	})
	if err != nil {
		if a.index != nil {
			a.index.Close()
		}
		a.closeSockets()
		return nil, cmp.Or(listenErr, err)
	}
	a.store = store
	a.outgoing.Use(store)
	if a.spool, err = spool.New(cfg.Store, spool.FileLimit); err != nil {
		a.close()
		return nil, err
	}
	a.watcher = newWatcher(cfg, log, store)
	a.hooks = hook.New(hook.Config{Store: store, Log: log})
	return a, nil
}

// stepOr returns the function that a test has set in c.step, or other if c.step is nil.
func (c *config) stepOr(other func(name string)) func(name string) {
	if c.step != nil {
		return c.step
	}
	return other
}

// newWatcher returns a watcher that reports changed files to the store.
func newWatcher(cfg *config, log *slog.Logger, store *maildir.Store) *watcher.Watcher {
	return watcher.New(watcher.Config{
		Root: store.WatchRoot(),
		Skip: func(rel string, dir bool) bool { return dir && !maildir.Watched(rel) },
		OnBatch: func(ctx context.Context, b watcher.Batch) {
			if testStep != nil {
				testStep("batch")
			}
			store.Edited(ctx, b.Paths, b.Scan)
		},
		Log: log,

		NoEvents: cfg.Poll > 0,
		Poll:     cfg.Poll,
	})
}

// descriptors returns how many files, folders and connections the process may have open at the same time. The Go
// runtime has already raised that limit to its maximum. Operations on the store may use at most half of the limit, and
// Git at most a quarter. The rest is for connections and readers.
func descriptors() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 1024
	}
	return int(min(uint64(l.Cur), 1<<20))
}

func openHistory(cfg *config, log *slog.Logger, k *store.Keeper, share *gitlog.Share) (history.Log, error) {
	dir := k.Tree.Dir()
	if err := gitlog.Init(dir); err != nil {
		return nil, err
	}
	return gitlog.Open(gitlog.Config{
		Dir:      dir,
		Log:      log.With("project", k.Slug),
		Domain:   cfg.Domains[0],
		External: cfg.CommitExternal,
		UnderWay: k.Writer.Writes,
		Share:    share,
		Step:     testStep,
	})
}

// openIndex opens the index. It fills a new index from the trees before any query runs.
func openIndex(
	ctx context.Context, cfg *config, log *slog.Logger, trees map[string]*tree.Tree, progress func(project string, files int),
) (*indexer.Index, error) {
	path := storedir.IndexPath(cfg.Store)
	if err := storedir.MoveIndex(cfg.Store); err != nil {
		log.Warn("cannot move the index from its old location", "error", err)
	}
	x, err := indexer.Open(ctx, indexer.Config{Path: path, Log: log})
	if err != nil {
		return nil, fmt.Errorf("%w. Check whether the disk is full, then run `mailtree doctor`", err)
	}
	if !x.Fresh() || len(trees) == 0 {
		return x, x.Retain(ctx, trees)
	}
	x.Close()
	began := time.Now()
	if err := indexer.Rebuild(ctx, path, trees, progress); err != nil {
		return nil, err
	}
	log.Info("index rebuilt", "projects", len(trees), "took", time.Since(began).Round(time.Millisecond))
	return indexer.Open(ctx, indexer.Config{Path: path, Log: log})
}

// listen creates the sockets. Some network file systems do not support sockets. On such a file system, a server in the
// foreground runs without the store's own socket. A background server creates its sockets only once it can write its
// log. Otherwise, clients that connect early would be disconnected.
func (a *app) listen(ctx context.Context) error {
	if a.cfg.background {
		f, err := storedir.OpenLog(a.cfg.Store)
		if err != nil {
			return err
		}
		f.Close()
	}
	path := storedir.SocketPath(a.cfg.Store)
	l, err := socket.Listen(ctx, socket.Config{Path: path, Busy: func() bool { return !a.hooks.Idle() }, Log: a.log})
	switch {
	case err == nil:
		a.sockets = append(a.sockets, l)
	case a.cfg.background:
		return err
	default:
		a.log.Warn("cannot open the socket, so `mailtree stdio` and other commands cannot reach this server", "error", err)
	}
	if a.cfg.Socket == "" {
		return nil
	}
	if l, err = socket.Listen(ctx, socket.Config{Path: a.cfg.Socket, Open: true, Log: a.log}); err == nil {
		a.sockets = append(a.sockets, l)
	}
	return err
}

// closeSockets closes the sockets. Later calls do nothing.
func (a *app) closeSockets() {
	for _, l := range a.sockets {
		l.Close()
	}
	a.sockets = nil
}

// close releases the store. Call it only after run has returned.
func (a *app) close() error {
	a.closeSockets() // close the sockets first, because only the process that holds the lock may serve them
	err := a.store.Close()
	if cerr := a.index.Close(); err == nil {
		err = cerr
	}
	return err
}

// watch notifies the store of changes that other programs make to the trees, until ctx ends.
func (a *app) watch(ctx context.Context) error {
	var looking sync.WaitGroup
	defer looking.Wait() // wait for the goroutine below, which may open a project
	looking.Go(func() {
		select {
		case <-a.watcher.Ready():
			const scan = true
			a.store.Edited(ctx, nil, scan) // find changes made between the first scan and the start of the watch
		case <-ctx.Done():
		}
	})
	return a.watcher.Run(ctx)
}

// progressLine returns a function that shows on the terminal how many of a project's files have been read. It returns
// nil if standard error is not a terminal.
func progressLine(std stdio, what string) func(project string, files int) {
	f := terminal(std)
	if f == nil {
		return nil
	}
	var last time.Time
	return func(project string, files int) {
		if time.Since(last) > 100*time.Millisecond {
			last = time.Now()
			fmt.Fprintf(f, clearLine+"%s %s: %d files", what, project, files)
		}
	}
}

// refine returns a function that summarizes text with SUMMARY_COMMAND, or nil if that setting is empty.
func refine(cfg *config) func(context.Context, []byte) (string, error) {
	if cfg.SummaryCommand == "" {
		return nil
	}
	return command.New(cfg.SummaryCommand, 0).Summarize
}

// codePhoto returns a function that converts photos with cwebp, or nil if cwebp is not installed.
func codePhoto() func(context.Context, []byte) ([]byte, error) {
	path, err := exec.LookPath("cwebp")
	if err != nil {
		return nil
	}
	return cwebp.New(path, 0).Code
}
