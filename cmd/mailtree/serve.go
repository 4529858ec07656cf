package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"mailtree/maildir"
	mcpserver "mailtree/mcp"
)

// grace is how long requests in flight may take to finish at the end.
const grace = 5 * time.Second

func serveCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long:  "Run the server: make the store where it is missing, bring the index level with the files, and serve MCP\nover Streamable HTTP until interrupted.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return serve(c.Context(), p)
		},
	}
}

// serve runs everything that a server is; it starts every goroutine of the program but those of libraries, and
// returns when all have ended.
func serve(ctx context.Context, p *program) error {
	log := p.cfg.logger(p.std)
	ln, err := listen(ctx, p.cfg)
	if err != nil {
		return err
	}
	defer ln.Close() // where Serve does not come to it
	progress := progressLine(p.std, "reading")
	a, err := openApp(ctx, p.cfg, log, progress)
	if progress != nil {
		fmt.Fprint(p.std.err, "\r\033[K")
	}
	if err != nil {
		return err
	}
	defer a.close()
	port := ln.Addr().(*net.TCPAddr).Port
	health := &health{app: a, began: time.Now()}
	m := mcpserver.New(mcpserver.Config{
		Store: a.store, Version: version(), Host: p.cfg.Host, Token: a.store.Token(), RequireToken: p.cfg.RequireToken,
		Health: health.report, Log: log,
	})
	srv := m.HTTPServer("")

	// The parts end one after the other: those who wait for mail, requests in flight, the store.
	lasting := context.WithoutCancel(ctx)
	storing, stopStore := context.WithCancel(lasting)
	defer stopStore()
	stored, pumped, served := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() { stored <- a.store.Run(storing) }()
	watched := make(chan error, 1)
	go func() { watched <- a.watch(storing) }()
	pumping, stopPump := context.WithCancel(lasting)
	defer stopPump()
	go func() { pumped <- m.Run(pumping) }()
	go func() { served <- srv.Serve(ln) }()
	welcome(p, a, port)

	select {
	case <-ctx.Done():
		log.Info("stopping")
	case err = <-served:
		log.Error("HTTP server ended", "error", err)
	}
	stopPump()
	<-pumped
	shutdown(lasting, srv)
	stopStore()
	<-watched
	if rerr := <-stored; err == nil {
		err = rerr
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// shutdown lets requests in flight finish, within the time of grace.
func shutdown(ctx context.Context, srv *http.Server) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if srv.Shutdown(ctx) != nil {
		srv.Close()
	}
}

func listen(ctx context.Context, cfg *config) (net.Listener, error) {
	addr := net.JoinHostPort(cfg.Host, strconv.Itoa(cfg.Port))
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil && errors.Is(err, syscall.EADDRINUSE) && maildir.Held(cfg.Store) {
		return nil, fmt.Errorf("the store %s is in use by process %s, which may be the server on %s: use that one, or stop it", cfg.Store, maildir.LockHolder(cfg.Store), addr)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w. Is another server there? Choose another with PORT or --port, or --port 0 for any free one", addr, errors.Unwrap(err))
	}
	return ln, nil
}

// tuneMemory trades memory for speed as measured (MCP library: about 400 kB of garbage a call), unless the person
// who starts the server decided otherwise.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(176 << 20)
	}
}
