package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/storedir"
	mcpserver "mailtree/mcp"
	"mailtree/mcp/socket"
	"mailtree/mcp/tool"
	"mailtree/notify"
)

// grace is how long to wait for a response from a server.
const grace = 5 * time.Second

// These time limits apply after the server is asked to stop. The rest of stopTime is for closing files.
const (
	stopTime     = 7 * time.Second
	storeGrace   = stopTime - 500*time.Millisecond // for the store, to commit and push the remaining changes
	partsGrace   = 5 * time.Second                 // for all parts that use the store; after this time, the server stops anyway
	requestGrace = 4 * time.Second                 // for requests in flight
)

func serveCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: "Run the server until interrupted. The command creates the store if it is missing, brings the index up to date with\n" +
			"the files, and serves MCP over Streamable HTTP and on a Unix socket in the store. If a server is running in the\n" +
			"background, that server stops first. On a terminal, the command prints a line for each operation.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return serve(c.Context(), p)
		},
	}
	c.Flags().BoolVar(&p.background, "background", false,
		"run in the background: do not serve HTTP until `mailtree open` needs the page, log to server.log in the store, "+
			"and stop when no client has been connected for a while")
	_ = c.Flags().MarkHidden("background")
	return c
}

// serve opens the store and runs its server until the server stops.
func serve(ctx context.Context, p *program) error {
	keepInherited()
	log := p.cfg.logger(p.std)
	if p.background {
		signal.Ignore(syscall.SIGPIPE) // the parent process may exit before this process has opened the log
	}
	w, err := newWeb(p.cfg, log)
	if err != nil {
		return err
	}
	defer w.close()
	a, err := openServed(ctx, p, w)
	if err != nil {
		return err
	}
	defer a.close()
	if f := terminal(p.std); f != nil && !p.background {
		a.shown = &activity{out: f, now: time.Now}
	}
	return a.run(ctx, p, w)
}

// openServed opens the store and, for a server in the foreground, the port. If a background server is already serving
// this store, openServed asks that server to exit, so that this server can use the store and the port. If a server in
// the foreground is using the port, openServed returns an error that describes that server. If the port cannot be
// opened for another reason, openServed does not disturb the running server.
func openServed(ctx context.Context, p *program, w *web) (*app, error) {
	if p.background {
		return takeStore(ctx, p, w.log)
	}
	taken := w.openPort(ctx)
	if taken != nil && !(errors.Is(taken, syscall.EADDRINUSE) && serves(ctx, p.cfg)) {
		return nil, taken
	}
	a, err := takeStore(ctx, p, w.log)
	if errors.Is(err, maildir.ErrConflict) {
		return nil, cmp.Or(p.served(ctx), err)
	}
	if err == nil && taken != nil {
		if err = w.openPort(ctx); err != nil {
			a.close()
		}
	}
	return a, err
}

// running returns the health report of this store's server, or nil if no server responds.
func (p *program) running(ctx context.Context) *healthReport {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	var r healthReport
	if err := cli.NewClient(p.cfg.dialServer, tool.Caller{}).Get(ctx, "/health", &r); err != nil {
		return nil
	}
	return &r
}

// served returns an error that says that this store's server is already running. It returns nil if no server responds.
func (p *program) served(ctx context.Context) error {
	r := p.running(ctx)
	if r == nil {
		return nil
	}
	at := ""
	if r.URL != "" {
		at = ", at " + r.URL
	}
	return fmt.Errorf("a server for the store %s is already running: process %s%s. Use it, or stop it with `mailtree stop`",
		p.cfg.Store, storedir.Holder(p.cfg.Store), at)
}

// run serves the open store on the store's sockets and on the TCP port. It starts all of the program's own goroutines,
// and returns when they have ended.
func (a *app) run(ctx context.Context, p *program, w *web) error {
	ctx, end := context.WithCancelCause(ctx)
	yield := func() { end(nil) }
	defer yield()
	waker := newWaker(p, a)
	m := mcpserver.New(a.serverConfig(p, waker, w, yield))
	a.metrics.usage, a.metrics.incoming = m.Usage, a.spool.Usage
	servers := []*http.Server{m.HTTPServer("")}
	for range a.sockets {
		servers = append(servers, m.SocketServer())
	}

	// When the server stops, all parts stop concurrently, except for the store, which stops last. See partsGrace.
	lasting := context.WithoutCancel(ctx)
	storing, stopStore := context.WithCancel(lasting)
	defer stopStore()
	var store, sent, hooks, callers, serving sync.WaitGroup
	var storeErr error
	store.Go(func() { storeErr = a.store.Run(storing) })
	store.Go(func() { _ = a.watch(storing) })
	sending, stopSending := context.WithCancel(lasting)
	defer stopSending()
	sent.Go(func() { a.outgoing.Run(sending) })
	hooking, stopHooks := context.WithCancel(lasting)
	defer stopHooks()
	hooks.Go(func() { a.hooks.Run(hooking) })
	calling, stopCallers := context.WithCancel(lasting)
	defer stopCallers()
	callers.Go(func() { _ = m.Run(calling) })
	callers.Go(func() { waker.run(calling) })
	callers.Go(func() { a.notify(calling, p) })
	callers.Go(func() { a.stopIdle(ctx, yield) })
	callers.Go(func() { a.guardFiles(ctx, end) })
	served := make(chan error, len(servers)+1) // one extra for the gateway
	serve := func(srv *http.Server, l net.Listener) { serving.Go(func() { served <- srv.Serve(l) }) }
	var users *socket.Listener
	if len(a.sockets) > 0 {
		users = a.sockets[0]
	}
	w.use(func(l net.Listener) { serve(servers[0], l) }, users) // do this before a command can ask for the page over a socket
	for i, l := range a.sockets {
		serve(servers[i+1], l)
	}
	err := a.takeMail(calling, &callers, served)
	if err == nil {
		err = a.announce(ctx, p, w)
	}
	if err != nil {
		yield()
	}

	select {
	case <-ctx.Done():
		a.log.Info("stopping")
	case err = <-served:
		a.log.Error("a listener failed", "error", err)
		yield()
	}
	a.store.StopBy(time.Now().Add(storeGrace))
	stopSending()
	stopHooks()
	stopCallers()
	serving.Go(func() { a.endRequests(lasting, servers) })
	a.awaitParts([]part{{"requests", &serving}, {"waiting callers", &callers}, {"hooks", &hooks}, {"deliveries", &sent}})
	stopStore()
	store.Wait()
	return a.reason(context.Cause(ctx), cmp.Or(err, storeErr))
}

// notify runs the user's NOTIFY_COMMAND, if one is set, until ctx ends.
func (a *app) notify(ctx context.Context, p *program) {
	if len(a.cfg.Notify) == 0 {
		return
	}
	me, err := p.me()
	if err != nil {
		a.log.Warn("NOTIFY_COMMAND is ignored", "error", err)
		return
	}
	cfg := notify.Config{Store: a.store, Me: maildir.PersonName(me), Command: a.cfg.Notify, Looks: &a.looks, Log: a.log}
	notify.New(cfg).Run(ctx)
}

// announce reports that the server is running. A foreground server reports this to the user who started the server. A
// background server first redirects its output to its log, and reports it there.
func (a *app) announce(ctx context.Context, p *program, w *web) error {
	if !p.background {
		welcome(ctx, p, a, w)
		return nil
	}
	err := detach(p.cfg.Store)
	a.log.Info("serving in the background", "version", version(), "store", p.cfg.Store, "pid", os.Getpid(), "idle", p.cfg.Idle)
	return err
}

// reason returns the error to report when a server has ended. This is err or, if the server stopped itself, the cause.
func (a *app) reason(cause, err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	if !errors.Is(cause, errIndexGone) && !errors.Is(cause, errStoreGone) {
		return err
	}
	if err != nil {
		a.log.Warn("the server exited with an error", "error", err)
	}
	if !storedir.IsStore(a.cfg.Store) { // the whole store is gone, not just the index
		return errStoreGone
	}
	return cause
}

// serverConfig returns the configuration of the MCP server.
func (a *app) serverConfig(p *program, waker *waker, w *web, stop func()) mcpserver.Config {
	health := &health{app: a, web: w, began: time.Now()}
	a.metrics.health = health
	cfg := mcpserver.Config{
		Store:        a.store,
		Version:      version(),
		Host:         a.cfg.Host,
		Token:        a.store.Token(),
		RequireToken: a.cfg.RequireToken,
		UserOnly:     a.cfg.UserOnly,
		Page:         newPage(p, a, waker),
		URL:          w.url,
		Health:       health.verdict,
		Ready:        health.ready,
		Metrics:      a.metrics.handler(),
		Called:       a.metrics.called,
		Nudge:        waker.serve,
		Queue:        a.outgoing,
		CheckAddress: a.checkAddress,
		Looked:       a.looks.Shown,
		Stop:         stop,
		Explain:      words.Explain,
		Log:          a.log,
		MaxAnswer:    a.cfg.MaxAnswer,
	}
	if p.background {
		cfg.Yield = stop
	}
	return cfg
}

// These errors are the reasons why a server stops itself.
var (
	errIndexGone = errors.New("index/index.sqlite3 was removed or replaced while the server was running: restart the server " +
		"to rebuild the index from the files")
	errStoreGone = errors.New("the store was removed or moved while the server was running. If you moved it, start the server again " +
		"with its new path")
)

// guardFiles checks once a second the files through which programs find the server. It stops the server if the folder
// is no longer a store. It also stops the server if the index was removed or replaced, because other programs would
// then not see the server's writes, and SQLite would open an empty file in place of the index. It recreates sockets
// whose files were lost.
func (a *app) guardFiles(ctx context.Context, end context.CancelCauseFunc) {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	blocked := map[*socket.Listener]bool{}
	for ctx.Err() == nil {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		if !storedir.IsStore(a.cfg.Store) {
			end(errStoreGone)
			return
		}
		a.renewSockets(ctx, blocked)
		if a.index.Gone() {
			end(errIndexGone)
			return
		}
	}
}

// renewSockets recreates sockets whose file was removed or replaced. If that fails for a socket, renewSockets logs the
// failure only once until the socket works again. blocked contains the sockets whose failure has been logged.
func (a *app) renewSockets(ctx context.Context, blocked map[*socket.Listener]bool) {
	for _, l := range a.sockets {
		err := l.Renew(ctx)
		if err != nil && !blocked[l] && ctx.Err() == nil {
			a.log.Error("the socket was removed or replaced and cannot be recreated, so new clients cannot connect; will "+
				"retry", "error", err)
		}
		blocked[l] = err != nil
	}
}

// takeStore opens the store as soon as no other process has the store open. See taking.
func takeStore(ctx context.Context, p *program, log *slog.Logger) (a *app, err error) {
	progress := progressLine(p.std, "reading")
	err = p.taking(ctx, func() (err error) {
		a, err = openApp(ctx, p.cfg, log, progress)
		return err
	})
	if progress != nil {
		fmt.Fprint(p.std.err, clearLine)
	}
	return a, err
}

// serves reports whether the store's server accepts connections.
func serves(ctx context.Context, cfg *config) bool {
	c, err := cfg.dialServer(ctx)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// stopIdle stops a background server once no client is using the server.
func (a *app) stopIdle(ctx context.Context, stop func()) {
	if a.cfg.background && a.sockets[0].AwaitIdle(ctx, a.cfg.Idle) == nil {
		a.log.Info("stopping because no client has been connected for a while")
		stop()
	}
}

// part is a part of the server that must end before the store is closed.
type part struct {
	what string // the part's name, in the plural
	wg   *sync.WaitGroup
}

// awaitParts waits up to partsGrace for all parts to end, and logs the parts that have not ended. A part such as a hook
// may hang because a disk is not responding. Such a part keeps its resources until the process ends.
func (a *app) awaitParts(parts []part) {
	late, cancel := context.WithTimeout(context.Background(), partsGrace)
	defer cancel()
	ended := make([]chan struct{}, len(parts))
	for i, p := range parts {
		ended[i] = make(chan struct{})
		go func() { defer close(ended[i]); p.wg.Wait() }()
	}
	for i, p := range parts {
		select {
		case <-ended[i]:
		case <-late.Done():
			select {
			case <-ended[i]:
			default:
				a.log.Error("the "+p.what+" have not finished; the server no longer waits for them",
					"waited", partsGrace)
			}
		}
	}
}

// acceptTime is how long a server that is stopping still accepts clients that have already connected. If a client finds
// no socket, it can ask the next server. If a client's connection is cut, it cannot know what the server has done.
const acceptTime = 10 * time.Millisecond

// endRequests stops accepting clients, and lets requests in flight finish within requestGrace. When endRequests
// returns, no socket is open. An open socket would accept connections that are meant for the next server on this port.
func (a *app) endRequests(ctx context.Context, servers []*http.Server) {
	for _, l := range a.sockets {
		l.Withdraw()
	}
	time.Sleep(acceptTime)
	ctx, cancel := context.WithTimeout(ctx, requestGrace)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, srv := range servers {
		wg.Go(func() {
			if srv.Shutdown(ctx) != nil {
				srv.Close()
			}
		})
	}
}

// tuneMemory trades memory for speed, because each call through the MCP library leaves about 400 kB of garbage. It does
// not override limits that are set in the server's environment.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(144 << 20)
	}
}
