package main

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir/format"
	"mailtree/maildir/keys"
	"mailtree/mcp/mail"
)

func threadCommand(p *program) *cobra.Command {
	var heads bool
	var cursor string
	c := &cobra.Command{
		Use:   "thread [ID]",
		Short: "Read a thread, oldest message first",
		Long: "Read a thread, oldest message first. ID is the id of the thread, or the id or row number of a message in it; without\n" +
			"ID, the command shows the first thread that is waiting for you. It does not mark anything as read.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeThread,
	}
	f := p.addDeskFlags(c)
	c.Flags().BoolVar(&heads, "heads", false, "omit the bodies")
	c.Flags().StringVar(&cursor, "cursor", "", "with --json: continue where the previous response ended")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.atMessage(c.Context(), f, nobodys, args, func(ctx context.Context, d *deskWork, id string) error {
			return readThread(ctx, d, strings.Join(args, ""), id, heads, cursor)
		})
	}
	return c
}

// readThread prints the thread with the given id. given is the argument with which the user selected the thread, or "".
func readThread(ctx context.Context, d *deskWork, given, id string, heads bool, cursor string) error {
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
			shown := &threadScreen{Screen: s, desk: d, given: given, vouched: map[string]string{}}
			for {
				shown.show(t, heads)
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

// threadScreen prints the messages of a thread. It prints the subject only when the subject changes. It prints who
// vouches for an author only when that changes.
type threadScreen struct {
	*cli.Screen
	desk    *deskWork
	given   string            // the argument with which the user selected the thread
	subject string            // the thread's subject; "" before the first message
	vouched map[string]string // for each author, the text last printed about who vouches for the author
}

func (s *threadScreen) show(t *mail.ThreadResource, heads bool) {
	ids := make([]string, len(t.Messages))
	for i := range t.Messages {
		ids[i] = t.Messages[i].ID
	}
	rows := make([]cli.Row, len(ids))
	for i, name := range s.desk.letter(s.given, t.ThreadID, ids) {
		m := &t.Messages[i]
		if !heads {
			s.showMessage(m, name)
		}
		rows[i] = cli.Row{Cells: []string{name, cli.Line(m.From), cli.Line(m.Subject), s.Ago(m.Created)}}
	}
	if heads {
		s.Table(rows)
	}
}

// showMessage prints a message's name, followed by the message. It prints the subject only if the subject differs from
// the thread's subject by more than a leading "Re: ".
func (s *threadScreen) showMessage(m *mail.Message, name string) {
	if s.subject == "" {
		s.subject = cmp.Or(m.Subject, m.ThreadID)
		s.Tell("%s\n", s.Bold(cli.Line(s.subject)))
	}
	about := s.Ago(m.Created)
	who := vouched(m)
	if !m.Verified || !format.ServerName(m.From) && who != cmp.Or(s.vouched[m.From], keys.SelfAsserted) {
		about += "  " + who
		s.vouched[m.From] = who
	}
	s.Tell("\n%s  %s  %s\n", name, s.Bold(cli.Line(fromTo(m))), s.Faint(about))
	if own := strings.TrimPrefix(m.Subject, "Re: "); own != strings.TrimPrefix(s.subject, "Re: ") {
		s.Tell("%s\n", cli.Line(m.Subject))
	}
	s.Printf("\n")
	if m.Body != nil {
		s.Printf("%s", s.Markdown(*m.Body, 2))
	}
	if m.Truncated {
		s.Tell("%s\n", s.Faint("to read the rest: mailtree read "+name))
	}
}

// fromTo returns a message's author and recipients.
func fromTo(m *mail.Message) string {
	who := m.From + " to " + cmp.Or(strings.Join(m.To, ", "), "nobody")
	if len(m.CC) > 0 {
		who += ", cc " + strings.Join(m.CC, ", ")
	}
	return who
}
