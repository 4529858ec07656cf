package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/mcp/mail"
)

func readCommand(p *program) *cobra.Command {
	var peek bool
	c := &cobra.Command{
		Use:   "read [ID]",
		Short: "Read a message",
		Long: "Read a message; without ID, the first one that is waiting for you. A message that was sent to you is marked as read.\n" +
			"ID is a row number from the last list, or a message id, which you can abbreviate to any unique prefix. A row number\n" +
			"from `mailtree` selects the unread messages in that thread or, if there are none, the message that is waiting for you.\n" +
			"With --json, the command prints the response of the check_my_messages tool, or resource://message for a message that\n" +
			"is not yours.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeMessage,
	}
	f := p.addDeskFlags(c)
	c.Flags().BoolVar(&peek, "peek", false, "do not mark the message as read")
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.atMessage(c.Context(), f, mine, args, func(ctx context.Context, d *deskWork, id string) error {
			ids := []string{id}
			if len(args) > 0 {
				var err error
				if ids, err = d.messagesOf(ctx, 0, func(m *mail.Delivery) bool { return !m.Read }); err != nil {
					return err
				}
			}
			for i, id := range ids {
				if err := readMessage(ctx, d, id, peek, i == len(ids)-1); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return c
}

// readMessage prints the user's own copy of a message or, if the user has no copy, the public form of the message. If
// last is set, it also prints the commands that the user may want to run next.
func readMessage(ctx context.Context, d *deskWork, id string, peek, last bool) error {
	args := map[string]any{"project_key": d.Slug, "agent_name": d.Person, "message_id": id, "mark_read": !peek}
	err := call(ctx, d, "check_my_messages", args, func(in *mail.Inbox) error {
		for i := range in.Messages {
			m := &in.Messages[i]
			next := func(offset int64) (*mail.Message, error) {
				args["body_offset"] = offset
				var more mail.Inbox
				if err := d.Call(ctx, "check_my_messages", args, &more); err != nil || len(more.Messages) == 0 {
					return nil, err
				}
				return &more.Messages[0].Message, nil
			}
			var commands []string
			if last {
				commands = whatNext(d, m)
			}
			if err := pageMessage(ctx, d, &m.Message, commands, next); err != nil {
				return err
			}
			if !last {
				d.Printf("\n")
			}
		}
		return nil
	})
	if refused := (&cli.Refusal{}); errors.As(err, &refused) && refused.NotFound() {
		return readOther(ctx, d, id)
	}
	return err
}

// readOther prints a message that the user has neither received nor sent.
func readOther(ctx context.Context, d *deskWork, id string) error {
	uri := "resource://message/" + url.PathEscape(id) + "?project=" + d.Slug
	return readURI(ctx, d, uri, func(m *mail.MessageResource) error {
		return pageMessage(ctx, d, &m.Message, nil, func(offset int64) (*mail.Message, error) {
			var more mail.MessageResource
			err := d.Read(ctx, uri+"&body_offset="+strconv.FormatInt(offset, 10), &more)
			return &more.Message, err
		})
	})
}

// pageMessage prints a message with its whole body. On a terminal, it also prints the commands that the user may want
// to run next. It reads the rest of the body with next, which returns the part of the body that begins at an offset.
func pageMessage(
	ctx context.Context, d *deskWork, m *mail.Message, commands []string, next func(offset int64) (*mail.Message, error),
) error {
	var body strings.Builder
	for part := m; part != nil; {
		if part.Body != nil {
			body.WriteString(*part.Body)
		}
		if part.NextOffset == 0 {
			break
		}
		var err error
		if part, err = next(part.NextOffset); err != nil {
			return err
		}
	}
	return d.Paged(ctx, func(s *cli.Screen) error {
		printHead(s, m)
		s.Printf("%s", s.Markdown(body.String(), 0))
		if s.Width > 0 && len(commands) > 0 {
			s.Printf("\n%s\n", s.Faint("next: mailtree "+strings.Join(commands, "   ")))
		}
		return nil
	})
}

// whatNext returns the commands that the user may want to run after reading a message.
func whatNext(d *deskWork, m *mail.Delivery) (commands []string) {
	id := d.rowOf(m.ID)
	switch {
	case m.Kind == index.KindSent:
	case format.ServerName(m.From): // nobody reads replies to the server
		commands = append(commands, "archive "+id)
	default:
		commands = append(commands, "reply "+id+` "…"`)
		if m.AckRequired && !m.Acked {
			commands = append(commands, "ack "+id)
		}
	}
	return append(commands, "thread "+id)
}

// printHead prints a message's header, and each recipient's last action on the message.
func printHead(s *cli.Screen, m *mail.Message) {
	s.Tell("%s\n", s.Bold(cli.Line(m.Subject)))
	rows := []cli.Row{
		{Cells: []string{"from", sender(m)}},
		{Cells: []string{"to", listNames(m.To)}},
		{Cells: []string{"cc", listNames(m.CC)}},
		{Cells: []string{"bcc", listNames(m.BCC)}},
		{Cells: []string{"date", cli.Exact(m.Created) + ", " + s.Ago(m.Created)}},
		{Cells: []string{"dated", cli.Exact(m.Date)}},
		{Cells: []string{"reply to", listNames(m.ReplyTo)}},
		{Cells: []string{"id", cli.Line(m.ID)}},
		{Cells: []string{"thread", cli.Line(m.ThreadID)}},
		{Cells: []string{"in reply to", cli.Line(m.InReplyTo)}},
	}
	if m.Importance != "normal" {
		rows = append(rows, cli.Row{Cells: []string{"importance", m.Importance}})
	}
	if m.AckRequired {
		rows = append(rows, cli.Row{Cells: []string{"needs", "an acknowledgement"}})
	}
	for _, r := range m.Receipts {
		rows = append(rows, cli.Row{Cells: []string{"receipt", cli.Line(r.Agent) + ": " + howFar(&r)}})
	}
	for _, a := range m.Attachments {
		where := a.Path
		if a.File != "" {
			where = a.File
		}
		rows = append(rows, cli.Row{Cells: []string{"file", fmt.Sprintf("%s (%s, %d bytes)", cli.Line(where), cli.Line(a.MediaType), a.Bytes)}})
	}
	s.Facts(told(rows))
	s.Printf("\n")
}

// sender returns a message's sender, and who vouches for the sender. For a verified message from the server itself, it
// returns only the sender.
func sender(m *mail.Message) string {
	if m.Verified && format.ServerName(m.From) {
		return cli.Line(m.From)
	}
	return cli.Line(m.From) + " (" + vouched(m) + ")"
}

// vouched says who vouches for the sender, or that the message is not verified.
func vouched(m *mail.Message) string {
	if !m.Verified {
		return "not verified"
	}
	return cli.Line(m.Auth)
}

func listNames(of []string) string {
	all := make([]string, len(of))
	for i, n := range of {
		all[i] = cli.Line(n)
	}
	return strings.Join(all, ", ")
}

// told returns the facts whose value is not empty.
func told(facts []cli.Row) []cli.Row {
	return slices.DeleteFunc(facts, func(r cli.Row) bool { return r.Cells[1] == "" })
}
