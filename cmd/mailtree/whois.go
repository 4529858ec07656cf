package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cli"
	"mailtree/maildir/index"
	"mailtree/mcp/mail"
)

func whoisCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:               "whois AGENT",
		Short:             "Show an agent: its task, its claims, what it has read",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: p.completeAgent,
	}
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.atDesk(c.Context(), f, nobodys, nil, func(ctx context.Context, d *deskWork) error { return showAgent(ctx, d, args[0]) })
	}
	return c
}

func showWhois(d *deskWork, w *mail.Whois) error {
	d.Printf("%s  %s\n", d.Bold(w.Name), d.Faint(w.Project+" "+cli.Line(w.HumanKey)))
	facts := []cli.Row{
		{Cells: []string{"program", cli.Line(cmp.Or(w.Program, "unknown"))}},
		{Cells: []string{"model", cli.Line(w.Model)}},
		{Cells: []string{"task", cli.Line(w.Task)}},
		{Cells: []string{"status", presence(w.Status, w.Asks)}},
		{Cells: []string{"since", cli.Exact(w.Inception)}},
		{Cells: []string{"active", seen(d, w.LastActive)}},
		{Cells: []string{"mail", fmt.Sprintf("%d unread of %d", w.Unread, w.Total)}},
	}
	shown := told(facts)
	for _, c := range w.Claims {
		shown = append(shown, cli.Row{Cells: []string{"claim", cli.Line(c.Path) + ", for " + d.In(c.Expires) + reason(c.Reason)}})
	}
	for _, m := range w.Mail {
		shown = append(shown, cli.Row{Cells: []string{"has", d.ShortID(m.ID) + " from " + cli.Line(m.From) + ": " + howFar(&m.Receipt)}})
	}
	for _, c := range w.Commit {
		shown = append(shown, cli.Row{Cells: []string{"commit", madeAt(d, c)}})
	}
	if w.Note != "" {
		shown = append(shown, cli.Row{Cells: []string{"note", cli.Line(w.Note)}})
	}
	d.Table(shown)
	return nil
}

// madeAt returns a commit as the tool prints it, with hash, time and subject, but with the time in a form
// for people.
func madeAt(d *deskWork, commit string) string {
	hash, rest, _ := strings.Cut(commit, " ")
	stamp, subject, ok := strings.Cut(rest, " ")
	if !ok || d.Ago(stamp) == "" {
		return cli.Line(commit)
	}
	return hash + "  " + seen(d, stamp) + "  " + cli.Line(subject)
}

// seen says when an agent was last active.
func seen(d *deskWork, stamp string) string {
	if stamp == "" {
		return ""
	}
	return d.Ago(stamp) + " (" + cli.Exact(stamp) + ")"
}

func reason(text string) string {
	if text == "" {
		return ""
	}
	return ": " + cli.Line(text)
}

// howFar returns the last thing that a recipient did with a message.
func howFar(r *index.Receipt) string {
	switch {
	case r.Status != "":
		return strings.TrimSuffix(r.Status+": "+cli.Line(r.Reply), ": ")
	case r.Acked:
		return "acknowledged"
	case r.Read:
		return "read"
	case !r.AnnouncedAt.IsZero():
		return "told of it"
	case r.Delivered:
		return "delivered"
	}
	return "not delivered"
}
