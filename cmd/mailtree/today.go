package main

import (
	"cmp"
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
				return d.Paged(ctx, func(s *cli.Screen) error { return showToday(d, s, t) })
			})
		})
	}
	return c
}

func showToday(d *deskWork, s *cli.Screen, t *maildir.Day) error {
	threads := map[string]bool{}
	ids := make([]string, len(t.Messages))
	for i, m := range t.Messages {
		ids[i] = m.ID
		threads[cmp.Or(m.ThreadID, m.ID)] = true
	}
	s.Printf("%s\n", s.Faint(fmt.Sprintf("%s today: %s, %s, %s, %s", t.Project, count(len(t.Messages), "message"),
		count(len(threads), "thread"), count(len(t.Agents), "agent"), count(len(t.Claims), "claim"))))
	rows := make([]cli.Row, len(ids))
	for i, name := range d.number(ids) {
		m := &t.Messages[i]
		rows[i].Cells = []string{name, s.Ago(m.Created.String()), d.people("", []string{m.From}), d.people("to ", m.To), cli.Line(m.Subject)}
	}
	titled(s, "Messages", rows)
	rows = nil
	for _, a := range t.Agents {
		rows = append(rows, cli.Row{Cells: []string{cli.Line(a.Name), s.Ago(a.LastActive.String()), some(a.Unread, "unread")}})
	}
	titled(s, "Agents", rows)
	rows = nil
	for _, c := range t.Claims {
		rows = append(rows, cli.Row{Cells: []string{cli.Line(c.Agent), cli.Line(c.Pattern), cli.Line(c.Reason)}})
	}
	titled(s, "Claims", rows)
	return nil
}

// titled prints a table below a title, or nothing for no rows.
func titled(s *cli.Screen, title string, rows []cli.Row) {
	if len(rows) > 0 {
		s.Printf("\n")
		rows[0].Title = title
		s.Table(rows)
	}
}
