package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/storedir"
	mcpserver "mailtree/mcp"
	"mailtree/mcp/socket"
)

// withServer calls do with a client of the store's server. Where none runs, this process has the
// store meanwhile and serves it to itself. Errors: do's; what keeps it from the store.
func (p *program) withServer(ctx context.Context, do func(ctx context.Context, c *cli.Client) error) error {
	if !storedir.IsStore(p.cfg.Store) {
		return &exitError{exitNothing, fmt.Errorf("there is no mail yet: no store is at %s. `mailtree setup` makes it, and "+
			"`mailtree new project` the mail of a code base", p.cfg.Store)}
	}
	for end := time.Now().Add(patience); ; {
		c, err := dialServer(ctx, p.cfg)
		if err == nil {
			c.Close()
			return p.asClient(ctx, func(ctx context.Context) (net.Conn, error) { return dialServer(ctx, p.cfg) }, do)
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
		served, err := p.servingAlone(ctx, do)
		switch {
		case served || !errors.Is(err, maildir.ErrConflict):
			return err
		case time.Now().After(end):
			return p.notServed()
		}
		select { // another command has the store, or a server is starting
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// servingAlone is withServer where no server runs. served is false where do was not called.
func (p *program) servingAlone(ctx context.Context, do func(context.Context, *cli.Client) error) (served bool, err error) {
	cfg := *p.cfg
	cfg.alone = true
	progress := progressLine(p.std, "reading")
	a, err := openApp(ctx, &cfg, slog.New(slog.DiscardHandler), progress)
	if progress != nil {
		fmt.Fprint(p.std.err, clearLine)
	}
	if err != nil {
		return false, err
	}
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	stored, served0 := make(chan error, 1), make(chan error, 1)
	go func() { stored <- a.store.Run(lasting) }()
	pipe, srv := socket.NewPipe(), mcpserver.New(a.serverConfig()).SocketServer()
	go func() { served0 <- srv.Serve(pipe) }()
	err = p.asClient(ctx, pipe.Dial, do)
	shutdown(lasting, []*http.Server{srv})
	<-served0
	stop()
	return true, errors.Join(err, <-stored, a.close())
}

// asClient calls do with a client that says it is a command line.
func (p *program) asClient(
	ctx context.Context, dial func(context.Context) (net.Conn, error), do func(context.Context, *cli.Client) error,
) error {
	caller, err := hello(p.env, stdioOptions{})
	if err != nil {
		return err
	}
	caller.Door, caller.Terminal = format.DoorCLI, p.atTerminal()
	c := cli.NewClient(dial, caller)
	defer c.Close()
	return do(ctx, c)
}

// atTerminal reports whether a person seems to type this command: it shows its errors on a terminal,
// and no agent's session says that it runs in one.
func (p *program) atTerminal() bool {
	return cli.IsTerminal(p.std.err) && p.variable("AGENT_NAME") == ""
}
