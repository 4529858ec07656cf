package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"mailtree/maildir/storedir"
	mcpserver "mailtree/mcp"
)

func stopCommand(p *program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "stop",
		Short: "Stop the server",
		Long: "Stop the store's server, and return when it has stopped. The next command that needs a server starts one again,\n" +
			"and so does an agent's next call over stdio. A service (`mailtree service`) starts again at the next login, unless it\n" +
			"is disabled.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			stopped, err := p.stop(c.Context())
			switch {
			case err != nil:
				return err
			case asJSON:
				return p.printJSON(stopped)
			}
			fmt.Fprintf(p.std.out, "process %d has stopped\n", stopped.Process)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return c
}

// longestStop is how long a server may take to finish its work.
const longestStop = 30 * time.Second

// stop stops the server, and returns once the server has exited. A server that is starting, stopping or hung holds
// the store's lock but does not respond. In that case, stop asks again until the server responds or has exited.
func (p *program) stop(ctx context.Context) (stopping mcpserver.Stopping, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestStop)
	defer cancel()
	for {
		held := storedir.Held(p.cfg.Store)
		err = askServer(ctx, p.cfg, "stop", struct{}{}, &stopping)
		switch {
		case err == nil:
			return stopping, p.awaitEnd(ctx, stopping.Process)
		case held && errors.Is(err, context.DeadlineExceeded): // the server has hung, or is busy: ask again
		case !errors.Is(err, errNoServer):
			return stopping, fmt.Errorf("cannot ask the server to stop: %w", err)
		case !held && stopping.Process == 0:
			return stopping, &exitError{exitNothing, fmt.Errorf("no server is running for the store %s", p.cfg.Store)}
		case !held:
			return stopping, nil
		}
		stopping.Process, _ = strconv.Atoi(storedir.Holder(p.cfg.Store))
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			if stopping.Process == 0 {
				return stopping, errors.New("a process is using the store but is not responding, and the lock file does not " +
					"name it. It may be `mailtree restore` or a server that is starting: wait, and then try again")
			}
			return stopping, fmt.Errorf("process %d is using the store but is not responding. If it is a server that has hung, "+
				"you can end it, because sent messages are on disk: kill -9 %[1]d", stopping.Process)
		}
	}
}

// awaitEnd waits until no process holds the store's lock.
func (p *program) awaitEnd(ctx context.Context, process int) error {
	for storedir.Held(p.cfg.Store) {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("process %d is still shutting down", process)
		}
	}
	return nil
}
