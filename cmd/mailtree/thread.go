package main

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cli"
	"mailtree/mcp/mail"
)

func threadCommand(p *program) *cobra.Command {
	var heads bool
	var cursor string
	c := &cobra.Command{
		Use:   "thread [ID]",
		Short: "Read a thread, oldest message first",
		Long: "Read a thread, oldest message first: by its id, or by the id or number of a message in it; without ID the first that\n" +
			"waits for you. Nothing is marked read.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeThread,
	}
	f := p.addDeskFlags(c)
	c.Flags().BoolVar(&heads, "heads", false, "without the bodies")
	c.Flags().StringVar(&cursor, "cursor", "", "with --json: go on where the answer before ended")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.atMessage(c.Context(), f, nobodys, args, func(ctx context.Context, d *deskWork, id string) error {
			return readThread(ctx, d, id, heads, cursor)
		})
	}
	return c
}

func readThread(ctx context.Context, d *deskWork, id string, heads bool, cursor string) error {
	uri := "resource://thread/" + url.PathEscape(id) + "?project=" + d.Slug
	if !heads {
		uri += "&include_bodies=true"
	}
	page := func(cursor string, answer any) error {
		if cursor == "" {
			return d.Read(ctx, uri, answer)
		}
		return d.Read(ctx, uri+"&cursor="+url.QueryEscape(cursor), answer)
	}
	first := func(answer any) error { return page(cursor, answer) }
	return present(d, first, func(t *mail.ThreadResource) error {
		return d.Paged(ctx, func(s *cli.Screen) error {
			for {
				showThread(s, t, heads)
				if t.Next == "" {
					return nil
				}
				next := &mail.ThreadResource{}
				if err := page(t.Next, next); err != nil {
					return err
				}
				t = next
			}
		})
	})
}

func showThread(s *cli.Screen, t *mail.ThreadResource, heads bool) {
	if heads {
		rows := make([]cli.Row, len(t.Messages))
		for i := range t.Messages {
			m := &t.Messages[i]
			rows[i] = cli.Row{Cells: []string{s.ShortID(m.ID), s.Ago(m.Created), cli.Line(m.From), cli.Line(m.Subject)}}
		}
		s.Table(rows)
		return
	}
	for i := range t.Messages {
		m := &t.Messages[i]
		s.Printf("%s %s\n", s.Bold(cli.Line(m.From)+" to "+cli.Line(cmp.Or(strings.Join(m.To, ", "), "nobody"))),
			s.Faint(s.Ago(m.Created)+"  "+s.ShortID(m.ID)+"  "+vouched(m)))
		s.Printf("%s\n\n", cli.Line(m.Subject))
		if m.Body != nil {
			s.Printf("%s\n", strings.TrimRight(cli.Text(*m.Body), "\n"))
		}
		if m.Truncated {
			s.Printf("%s\n", s.Faint("it goes on: mailtree read "+s.ShortID(m.ID)))
		}
		s.Printf("\n")
	}
}
