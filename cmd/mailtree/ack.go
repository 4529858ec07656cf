package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"mailtree/cli"
	"mailtree/maildir"
	mcpserver "mailtree/mcp"
	"mailtree/mcp/mail"
)

func ackCommand(p *program) *cobra.Command {
	return p.eachMessage(&cobra.Command{
		Use:   "ack ID...",
		Short: "Acknowledge messages",
		Long:  "Tell the senders of messages that you have taken note of them. That marks them read.",
	}, func(ctx context.Context, d *deskWork, id string) error {
		args := map[string]any{"project_key": d.Slug, "agent_name": d.Person, "message_id": id}
		return call(ctx, d, "acknowledge_message", args, func(a *mail.Acked) error {
			d.Printf("acknowledged %s\n", d.ShortID(a.ID))
			return nil
		})
	})
}

func archiveCommand(p *program) *cobra.Command {
	return p.eachMessage(&cobra.Command{
		Use:   "archive ID...",
		Short: "Put messages of your inbox away",
		Long: "Put messages of your inbox away: lists leave them out (`mailtree inbox --archived` does not), searches and threads\n" +
			"have them still. That marks them read.",
	}, func(ctx context.Context, d *deskWork, id string) error {
		return askAbout(ctx, d, "archive", id, func(a *mcpserver.Archived) error {
			d.Say(nil, "archived %s: %s", d.ShortID(a.ID), cli.Line(a.Subject))
			return nil
		})
	})
}

func rmCommand(p *program) *cobra.Command {
	return p.eachMessage(&cobra.Command{
		Use:   "rm ID...",
		Short: "Delete messages, for everybody",
		Long: "Delete messages with all copies, for everybody, whoever wrote them, and say who had read them. They stay in the\n" +
			"project's Git history, and `mailtree undo` brings them back.",
	}, func(ctx context.Context, d *deskWork, id string) error {
		return askAbout(ctx, d, "delete", id, func(a *maildir.Deleted) error {
			d.Say(nil, "deleted %s (%d files): %s", d.ShortID(a.ID), len(a.Files), cli.Line(a.Subject))
			if len(a.Readers) > 0 {
				d.Printf("it was read by %s\n", listNames(a.Readers))
			}
			return nil
		})
	})
}

// eachMessage makes a command that acts on each named message. A failure does not stop the others. The
// command says how to take it back, and what waits next.
func (p *program) eachMessage(c *cobra.Command, do func(ctx context.Context, d *deskWork, id string) error) *cobra.Command {
	c.Args = cobra.MinimumNArgs(1)
	c.ValidArgsFunction = p.completeMessages
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, ids []string) error {
		return p.atDesk(c.Context(), f, mine, ids, func(ctx context.Context, d *deskWork) error {
			var failed []error
			for _, id := range d.IDs {
				if err := do(ctx, d, id); err != nil {
					failed = append(failed, err)
				}
			}
			if len(failed) < len(d.IDs) && !d.json {
				p.tellNext(ctx, d, "")
			}
			if len(failed) == 1 {
				return failed[0]
			}
			return errors.Join(failed...)
		})
	}
	return c
}

// askAbout has the server run a verb of its socket on a message, as the person, and prints the answer as
// call does.
func askAbout[T any](ctx context.Context, d *deskWork, verb, id string, show func(answer *T) error) error {
	return askVerb(ctx, d, verb, mcpserver.MessageAsk{Agent: d.Person, ID: id}, show)
}
