package main

import (
	"context"
	"errors"
	"fmt"
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
		Long: "Stop the server of the store, and return when it has ended. The next command starts one again, and so do agents\n" +
			"over stdio with their next call; a service (`mailtree service`) at the next login, unless it is disabled.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			stopped, err := p.stop(c.Context())
			switch {
			case err != nil:
				return err
			case asJSON:
				return p.printJSON(stopped)
			}
			fmt.Fprintf(p.std.out, "process %d has ended\n", stopped.Process)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the answer as JSON")
	return c
}

// longestStop is how long a server may take to end its work.
const longestStop = 30 * time.Second

// stop makes the server stop, and returns when it has ended.
func (p *program) stop(ctx context.Context) (stopping mcpserver.Stopping, err error) {
	err = askServer(ctx, p.cfg, "stop", struct{}{}, &stopping)
	if errors.Is(err, errNoServer) {
		return stopping, &exitError{exitNothing, fmt.Errorf("no server runs for the store %s", p.cfg.Store)}
	}
	if err != nil {
		return stopping, err
	}
	ctx, cancel := context.WithTimeout(ctx, longestStop)
	defer cancel()
	for storedir.Held(p.cfg.Store) {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return stopping, fmt.Errorf("process %d still ends its work", stopping.Process)
		}
	}
	return stopping, nil
}
