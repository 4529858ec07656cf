package main

import (
	"context"

	"github.com/spf13/cobra"

	"mailtree/mcp/mail"
)

func meCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "me",
		Short: "Show who you are in a project",
		Long: "Show who you are in a project. A person is an agent as any other, named by MAILTREE_ME, else by your login\n" +
			"name. It is made at first use.",
		Args: cobra.NoArgs,
	}
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.atDesk(c.Context(), f, mine, nil, func(ctx context.Context, d *deskWork) error { return showAgent(ctx, d, d.Person) })
	}
	return c
}

// showAgent prints everything known about an agent.
func showAgent(ctx context.Context, d *deskWork, name string) error {
	args := map[string]any{"project_key": d.Slug, "agent_name": name}
	return call(ctx, d, "whois", args, func(w *mail.Whois) error { return showWhois(d, w) })
}
