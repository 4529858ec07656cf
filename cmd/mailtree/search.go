package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/mcp/mail"
)

func searchCommand(p *program) *cobra.Command {
	var rank bool
	var limit uint
	var cursor string
	c := &cobra.Command{
		Use:   "search WORD...",
		Short: "Find messages",
		Long: "Find messages, newest first. A query can contain words, \"phrases\", prefix*, AND OR NOT -word (), from: to: cc:\n" +
			"subject: thread: importance: after: before:. Put -- before a word that begins with a dash. The exit status is 3 if no\n" +
			"message matches.",
		Args: cobra.MinimumNArgs(1),
	}
	f := p.addDeskFlags(c)
	c.Flags().BoolVar(&rank, "rank", false, "best match first")
	c.Flags().UintVarP(&limit, "limit", "n", maildir.DefaultPage, "maximum number of messages")
	c.Flags().StringVar(&cursor, "cursor", "", "continue where the previous list ended")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.atDesk(c.Context(), f, nobodys, nil, func(ctx context.Context, d *deskWork) error {
			query := strings.Join(args, " ")
			ask := map[string]any{"project_key": d.Slug, "query": query, "limit": limit}
			if rank {
				ask["order"] = "rank"
			}
			if cursor != "" {
				ask["cursor"] = cursor
			}
			return call(ctx, d, "search_messages", ask, func(h *mail.Hits) error { return p.showHits(ctx, d, query, h) })
		})
	}
	return c
}

func (p *program) showHits(ctx context.Context, d *deskWork, query string, h *mail.Hits) error {
	if h.Note != "" {
		p.remark("%s", cli.Line(h.Note))
	}
	if len(h.Hits) == 0 {
		return &exitError{exitNothing, fmt.Errorf("no message matches %s", format.Literal(query))}
	}
	return d.Paged(ctx, func(s *cli.Screen) error {
		ids := make([]string, len(h.Hits))
		for i := range h.Hits {
			ids[i] = h.Hits[i].ID
		}
		for i, name := range d.number(ids) {
			hit := &h.Hits[i]
			s.Table([]cli.Row{{Cells: []string{name, s.Ago(hit.Created), cli.Line(hit.From), cli.Line(hit.Subject)}}})
			if text := s.Snippet(hit.Snippet, hit.Subject); text != "" {
				s.Tell("    %s\n", text)
			}
		}
		amount := count(len(h.Hits), "message")
		if h.Next != "" {
			amount += ", and there are more: --cursor " + h.Next
		}
		s.Tell("%s\n", s.Faint(amount))
		return nil
	})
}
