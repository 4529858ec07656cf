package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
		Long: "Find messages, newest first, grouped by thread. A query can contain words, \"phrases\", prefix*, AND OR NOT -word (),\n" +
			"from: to: cc: subject: thread: importance: after: before: since:2d has:file is:unread. Put -- before a word that\n" +
			"begins with a dash. The exit status is 3 if no message matches.",
		Args: cobra.MinimumNArgs(1),
	}
	f := p.addDeskFlags(c)
	c.Flags().BoolVar(&rank, "rank", false, "best match first")
	c.Flags().UintVarP(&limit, "limit", "n", maildir.DefaultPage, "maximum number of messages")
	p.addMoreFlags(c, f, &cursor)
	since := c.Flags().String("since", "", "only messages after this time, such as 1d (one day ago), yesterday or 2026-01-31")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := needLimit(c, limit); err != nil {
			return err
		}
		after := ""
		if *since != "" {
			var err error
			if after, err = moment(c, "since", *since); err != nil {
				return err
			}
		}
		me, err := p.me()
		if err != nil {
			return err
		}
		return p.atDesk(c.Context(), f, nobodys, nil, func(ctx context.Context, d *deskWork) error {
			query := strings.Join(args, " ")
			ask := map[string]any{
				"project_key": d.Slug, "agent_name": maildir.PersonName(me), "query": sinceThen(query, after), "limit": limit,
			}
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

// byThread moves the hits in each thread up to the position of the first hit in that thread.
func byThread(hits []mail.Hit) {
	first := map[string]int{}
	for i := range hits {
		if _, ok := first[threadOf(&hits[i])]; !ok {
			first[threadOf(&hits[i])] = i
		}
	}
	slices.SortStableFunc(hits, func(a, b mail.Hit) int { return first[threadOf(&a)] - first[threadOf(&b)] })
}

// threadOf returns the id of the thread that a hit belongs to.
func threadOf(hit *mail.Hit) string { return cmp.Or(hit.ThreadID, hit.ID) }

// sinceThen narrows a query to messages that were sent after a time. If after is "", it returns the query unchanged.
func sinceThen(query, after string) string {
	if after == "" {
		return query
	}
	if strings.Contains(query, " OR ") { // the time must apply to the whole query
		query = "(" + query + ")"
	}
	return query + " after:" + after
}

func (p *program) showHits(ctx context.Context, d *deskWork, query string, h *mail.Hits) error {
	if h.Note != "" {
		p.remark("%s", cli.Line(h.Note))
	}
	if len(h.Hits) == 0 {
		return &exitError{exitNothing, fmt.Errorf("no message matches %s", format.Literal(query))}
	}
	return d.Paged(ctx, func(s *cli.Screen) error {
		byThread(h.Hits)
		ids := make([]string, len(h.Hits))
		for i := range h.Hits {
			ids[i] = h.Hits[i].ID
		}
		rows, thread, subject := make([]cli.Row, len(ids)), "", ""
		for i, name := range d.number(ids) {
			hit := &h.Hits[i]
			about := strings.TrimPrefix(hit.Subject, "Re: ")
			if thread != "" && hit.ThreadID == thread && about == subject { // a row above already shows the subject
				about = ""
			} else {
				thread, subject, about = hit.ThreadID, about, hit.Subject
			}
			rows[i] = cli.Row{
				Cells: []string{name, d.people("", []string{hit.From}), cli.Line(about), s.Ago(hit.Created)},
				Below: s.Snippet(hit.Snippet, hit.Subject),
			}
		}
		s.Table(rows)
		s.Tell("%s\n", s.Faint(count(len(h.Hits), "message")))
		if more := d.tellMore("search", h.Next); more != "" {
			s.Tell("%s\n", more)
		}
		return nil
	})
}
