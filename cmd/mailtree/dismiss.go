package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/maildir"
	mcpserver "mailtree/mcp"
)

func dismissCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "dismiss",
		Short: "Hide the diagnostics that `mailtree` currently lists",
		Long: "Hide the diagnostics below your list: agents stopped by a claim, agents that cannot be woken, and files with errors.\n" +
			"A diagnostic appears again if the problem happens again. Other users still see it. `mailtree problems` still lists the\n" +
			"files with errors, `mailtree agents` still lists the agents that cannot be woken, and `mailtree doctor` still lists\n" +
			"both.",
		Args: cobra.NoArgs,
	}
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.atDesk(c.Context(), f, mine, nil, func(ctx context.Context, d *deskWork) error {
			return askVerb(ctx, d, "dismiss", mcpserver.DismissAsk{Person: d.Person}, func(n *maildir.Dismissed) error {
				var parts []string
				for _, k := range []struct {
					n       int
					one, of string
				}{
					{n.Stopped, "action stopped by a claim", "actions stopped by claims"},
					{n.Asleep, "agent that cannot be woken", "agents that cannot be woken"},
					{n.Broken, "file with errors", "files with errors"},
				} {
					switch {
					case k.n == 1:
						parts = append(parts, "1 "+k.one)
					case k.n > 1:
						parts = append(parts, fmt.Sprintf("%d %s", k.n, k.of))
					}
				}
				if len(parts) == 0 {
					d.Tell("there is nothing to dismiss\n")
					return nil
				}
				d.Tell("dismissed: %s\n", strings.Join(parts, ", "))
				return nil
			})
		})
	}
	return c
}
