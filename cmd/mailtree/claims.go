package main

import (
	"context"

	"github.com/spf13/cobra"

	"mailtree/cli"
	"mailtree/mcp/mail"
)

func claimsCommand(p *program) *cobra.Command {
	var cursor string
	c := &cobra.Command{
		Use:   "claims",
		Short: "List who has claimed which files, until when",
		Args:  cobra.NoArgs,
	}
	f := p.addDeskFlags(c)
	c.Flags().StringVar(&cursor, "cursor", "", "go on where the list before ended")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return p.atDesk(c.Context(), f, nobodys, nil, func(ctx context.Context, d *deskWork) error {
			uri := "resource://claims/" + d.Slug
			if cursor != "" {
				uri += "?cursor=" + cursor
			}
			return readURI(ctx, d, uri, func(l *mail.ClaimsResource) error { return showClaims(d, l) })
		})
	}
	return c
}

func showClaims(d *deskWork, l *mail.ClaimsResource) error {
	rows := make([]cli.Row, len(l.Claims))
	for i := range l.Claims {
		c := &l.Claims[i]
		shared := ""
		if !c.Exclusive {
			shared = "shared"
		}
		rows[i] = cli.Row{Cells: []string{cli.Line(c.Path), cli.Line(c.Agent), "for " + d.In(c.Expires), shared, cli.Line(c.Reason)}}
	}
	d.Table(rows)
	if l.Next != "" {
		d.Printf("%s\n", d.Faint("there are more: --cursor "+l.Next))
	}
	return nil
}
