package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cli"
	"mailtree/mcp/mail"
)

func agentsCommand(p *program) *cobra.Command {
	var all bool
	var cursor string
	c := &cobra.Command{
		Use:   "agents",
		Short: "List the agents, and what each has unread",
		Long:  "List the agents and people of a project that were active within seven days: when they last did something, what is unread.",
		Args:  cobra.NoArgs,
	}
	f := p.addDeskFlags(c)
	c.Flags().BoolVarP(&all, "all", "a", false, "also those that were not active lately")
	c.Flags().StringVar(&cursor, "cursor", "", "go on behind this name")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.atDesk(c.Context(), f, nobodys, nil, func(ctx context.Context, d *deskWork) error {
			ask := map[string]any{"project_key": d.Slug, "active_only": !all}
			if cursor != "" {
				ask["cursor"] = cursor
			}
			return call(ctx, d, "list_agents", ask, func(l *mail.Directory) error { return showAgents(d, l) })
		})
	}
	return c
}

func showAgents(d *deskWork, l *mail.Directory) error {
	rows := make([]cli.Row, len(l.Agents))
	for i := range l.Agents {
		a := &l.Agents[i]
		rows[i] = cli.Row{Cells: []string{
			cli.Line(a.Name), presence(a.Status, a.Asks), d.Ago(a.LastActive), some(a.Unread, "unread"), some(len(a.Claims)+a.More, "claimed"),
			cli.Line(a.Program), cli.Line(a.Task),
		}}
	}
	d.Table(rows)
	if l.Next != "" {
		d.Printf("%s\n", d.Faint("there are more: --cursor "+l.Next))
	}
	return nil
}

// presence returns an agent's status, and whether the agent waits for a person's answer.
func presence(status string, asks bool) string {
	if !asks {
		return status
	}
	return strings.TrimSpace(status + " asks")
}

// some returns a number with its noun, or "" for none.
func some(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", n, what)
}
