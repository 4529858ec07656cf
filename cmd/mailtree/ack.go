package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/format"
	mcpserver "mailtree/mcp"
	"mailtree/mcp/mail"
)

func ackCommand(p *program) *cobra.Command {
	return p.eachMessage(&cobra.Command{
		Use:   "ack ID...",
		Short: "Acknowledge messages",
		Long: "Let senders know that you have taken note of their messages. The command also marks the messages as read. A row\n" +
			"number from `mailtree` selects every message in that thread that needs an acknowledgement, except unread messages that\n" +
			"arrived after the list was printed.",
	}, "Acknowledge", needsAck, func(ctx context.Context, d *deskWork, id string) error {
		args := map[string]any{"project_key": d.Slug, "agent_name": d.Person, "message_id": id}
		return call(ctx, d, "acknowledge_message", args, func(a *mail.Acked) error {
			d.Printf("acknowledged %s\n", d.ShortID(a.ID))
			return nil
		})
	})
}

// needsAck reports whether the user still has to acknowledge a message.
func needsAck(m *mail.Delivery) bool { return m.AckRequired && !m.Acked }

func archiveCommand(p *program) *cobra.Command {
	return p.eachMessage(&cobra.Command{
		Use:   "archive ID...",
		Short: "Archive messages",
		Long: "Archive messages in your inbox and mark them as read. Inbox lists then omit them (`mailtree inbox --archived` shows\n" +
			"them); searches and threads still include them. A row number from `mailtree` selects every message from that thread\n" +
			"in your inbox, except unread messages that arrived after the list was printed.",
	}, "Archive", func(*mail.Delivery) bool { return true }, func(ctx context.Context, d *deskWork, id string) error {
		return askAbout(ctx, d, "archive", id, func(a *mcpserver.Archived) error {
			d.Say(nil, "archived %s: %s", d.ShortID(a.ID), cli.Line(a.Subject))
			return nil
		})
	})
}

func rmCommand(p *program) *cobra.Command {
	return p.eachMessage(&cobra.Command{
		Use:   "rm ID...",
		Short: "Delete messages for everyone",
		Long: "Delete messages and all their copies for everyone, no matter who wrote them, and list the agents that had read them.\n" +
			"The messages stay in the project's Git history, and `mailtree undo` restores them. A row number from `mailtree`\n" +
			"selects the message in that thread that is waiting for you.",
	}, "Delete for everyone:", nil, func(ctx context.Context, d *deskWork, id string) error {
		return askAbout(ctx, d, "delete", id, func(a *maildir.Deleted) error {
			d.Say(nil, "deleted %s (%d files): %s", d.ShortID(a.ID), len(a.Files), cli.Line(a.Subject))
			if len(a.Readers) > 0 {
				d.Tell("%s had read it\n", listNames(a.Readers))
			}
			d.tellOutside(a.Outside, "it")
			d.tellQueued(a.Queued, "deleted")
			return nil
		})
	})
}

// eachMessage turns c into a command that calls do for each message in its arguments. If an argument is the row number
// of a thread, messagesOf uses wanted to select messages from that thread; messages that arrived after the list was
// printed stay as they are. If do fails for one message, the command
// still handles the remaining messages. At the end, it prints the command that undoes the action, and the next waiting
// message. question is the first word of the confirmation question that confirmMessages asks.
func (p *program) eachMessage(
	c *cobra.Command, question string, wanted func(*mail.Delivery) bool, do func(ctx context.Context, d *deskWork, id string) error,
) *cobra.Command {
	c.Args = cobra.MinimumNArgs(1)
	c.ValidArgsFunction = p.completeMessages
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, ids []string) error {
		p.step = format.NewStep()
		return p.atDesk(c.Context(), f, mine, ids, func(ctx context.Context, d *deskWork) error {
			var failed []error
			var all, newer []string
			done := 0
			for i := range d.IDs {
				listed := wanted
				if wanted != nil {
					listed = func(m *mail.Delivery) bool {
						if wanted(m) && d.threads[i].isNewer(m) {
							newer = append(newer, m.ID)
							return false
						}
						return wanted(m)
					}
				}
				ids, err := d.messagesOf(ctx, i, listed)
				if err != nil {
					failed = append(failed, err)
				}
				all = append(all, ids...)
			}
			if err := p.confirmMessages(ctx, d, question, all); err != nil {
				return err
			}
			for _, id := range all {
				if err := do(ctx, d, id); err != nil {
					failed = append(failed, err)
				} else {
					done++
				}
			}
			for _, id := range newer {
				d.Say(d.Warn, "%s arrived after the list and is unchanged: mailtree read %s", d.ShortID(id), d.ShortID(id))
			}
			if done > 0 && !d.json {
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

// askAbout asks the server to run one of the socket's verbs on a message, on behalf of the user. It prints the result
// with present.
func askAbout[T any](ctx context.Context, d *deskWork, verb, id string, show func(answer *T) error) error {
	return askVerb(ctx, d, verb, mcpserver.MessageAsk{Agent: d.Person, ID: id}, show)
}
