package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir/storedir"
)

func statusCommand(p *program) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show whether a server is running, and its state",
		Long: "Show whether a server is running for the store, and its state. The exit status is 1 if no server is running, or if\n" +
			"there is a problem that you need to fix. With --json, the command prints the /health response.",
		Args: cobra.NoArgs,
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	c.RunE = func(c *cobra.Command, _ []string) error { return p.status(c.Context(), asJSON) }
	return c
}

func (p *program) status(ctx context.Context, asJSON bool) error {
	if !serves(ctx, p.cfg) {
		if holder := storedir.Holder(p.cfg.Store); storedir.Held(p.cfg.Store) {
			return fmt.Errorf("the store %s is in use by process %s, which is not responding", p.cfg.Store, holder)
		}
		return cmp.Or(p.begin(), fmt.Errorf("no server is running for the store %s; the next command that needs a server "+
			"starts one", p.cfg.Store))
	}
	return p.asCommand(ctx, p.cfg.dialServer, func(ctx context.Context, c *cli.Client) error {
		d := &deskWork{Client: c, Screen: cli.NewScreen(p.std.out, p.variable), json: asJSON}
		health := func(answer any) error { return c.Get(ctx, "/health", answer) }
		return present(d, health, func(h *healthReport) error { return showStatus(ctx, d, h) })
	})
}

func showStatus(ctx context.Context, d *deskWork, h *healthReport) error {
	if err := showByTemplate(ctx, d, "status", h); err != nil {
		return err
	}
	if h.Status != "ok" {
		return &exitError{code: exitFailed}
	}
	return nil
}
