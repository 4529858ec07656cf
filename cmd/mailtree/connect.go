package main

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir/format"
	"mailtree/maildir/storedir"
	"mailtree/mcp/tool"
)

// withServer calls do with a client of the store's server. If no server is running, withServer starts one in the
// background. It returns errors from do, and an error if the server cannot be reached. If the store has no projects, it
// instead returns the error from begin, which explains how to get started.
func (p *program) withServer(ctx context.Context, do func(ctx context.Context, c *cli.Client) error) error {
	if !storedir.IsStore(p.cfg.Store) {
		return p.begin()
	}
	err := p.asCommand(ctx, p.dial, do)
	if refused := (&cli.Refusal{}); errors.As(err, &refused) && refused.NotFound() {
		return cmp.Or(p.begin(), err)
	}
	return err
}

// asCommand calls do with a client that identifies itself to the server as a command-line client. It returns errors
// from do and reach.
func (p *program) asCommand(ctx context.Context, dial dialFunc, do func(context.Context, *cli.Client) error) error {
	caller, err := hello(p.env, stdioOptions{})
	if err != nil {
		return err
	}
	caller.Door, caller.Terminal, caller.Step = format.DoorCLI, p.atTerminal(), p.step
	c, err := p.reach(ctx, dial, caller)
	if err != nil {
		return err
	}
	return do(ctx, c)
}

// dialFunc connects to a store's server.
type dialFunc = func(ctx context.Context) (net.Conn, error)

// reach returns a client for a server that responds. A server that is shutting down may accept a connection and close
// it. In that case, reach connects to the next server. It returns errors from dial, ctx and notServed.
func (p *program) reach(ctx context.Context, dial dialFunc, caller tool.Caller) (*cli.Client, error) {
	c := cli.NewClient(dial, caller)
	for end := time.Now().Add(grace); ; {
		err := c.Greet(ctx)
		if err == nil {
			return c, nil
		}
		lost := (*cli.LostError)(nil)
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case errors.As(err, &lost) && time.Now().Before(end):
			time.Sleep(10 * time.Millisecond)
			continue
		case errors.As(err, &lost):
			err = p.notServed()
		}
		return nil, err
	}
}

// atTerminal reports whether a user seems to have typed this command. This is the case if standard error is a terminal
// and the command does not run in an agent's session.
func (p *program) atTerminal() bool {
	return cli.IsTerminal(p.std.err) && p.variable("AGENT_NAME") == ""
}
