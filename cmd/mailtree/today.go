package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cli"
	"mailtree/maildir"
)

func todayCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "today",
		Short: "Show what happened since midnight: messages, who was active, claims",
		Args:  cobra.NoArgs,
	}
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.atDesk(c.Context(), f, nobodys, nil, func(ctx context.Context, d *deskWork) error {
			year, month, day := d.Now().Date()
			since := time.Date(year, month, day, 0, 0, 0, 0, time.Local)
			return askVerb(ctx, d, "today", since, func(t *maildir.Day) error {
				return d.Paged(ctx, func(s *cli.Screen) error { return showToday(s, t) })
			})
		})
	}
	return c
}

func showToday(s *cli.Screen, t *maildir.Day) error {
	threads := map[string]bool{}
	for _, m := range t.Messages {
		if m.ThreadID != "" {
			threads[m.ThreadID] = true
		}
	}
	s.Printf("%s\n", s.Faint(fmt.Sprintf("%s today: %s, %s, %s, %s", t.Project, count(len(t.Messages), "message"),
		count(len(threads), "thread"), count(len(t.Agents), "agent"), count(len(t.Claims), "claim"))))
	rows := make([]cli.Row, len(t.Messages))
	for i, m := range t.Messages {
		rows[i] = cli.Row{Cells: []string{
			s.ShortID(m.ID), s.Ago(m.Created.String()), fromTo(m.From, m.To), cli.Line(m.Subject),
		}}
	}
	s.Table(rows)
	rows = nil
	for _, a := range t.Agents {
		rows = append(rows, cli.Row{Cells: []string{cli.Line(a.Name), s.Ago(a.LastActive.String()), some(a.Unread, "unread")}})
	}
	for _, c := range t.Claims {
		rows = append(rows, cli.Row{Cells: []string{cli.Line(c.Agent), "", "claimed " + cli.Line(c.Pattern) + reason(c.Reason)}})
	}
	s.Table(rows)
	return nil
}

// fromTo returns the sender and the recipients of a message. A notice has no recipients in to, nor has a
// message with only blind copies.
func fromTo(from string, to []string) string {
	if len(to) == 0 {
		return cli.Line(from)
	}
	return cli.Line(from) + " to " + listNames(to)
}
