package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/format"
	mcpserver "mailtree/mcp"
	"mailtree/mcp/mail"
)

func laterCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "later ID...",
		Short: "Hide threads for a while",
		Long: "Hide threads from the list that `mailtree` prints. A thread appears again when the time is up, or when a newer\n" +
			"message arrives in it. The command does not mark anything as read. It does not hide a row of the list if a message\n" +
			"has arrived in that thread since the list was printed.",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: p.completeMessages,
	}
	given := c.Flags().String("for", "2h", "how long to hide them, such as 30m, 2h or 3d")
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, ids []string) error {
		long, err := cli.Duration(*given)
		if err != nil {
			return usageError(c, fmt.Errorf("--for %w", err))
		}
		if long <= 0 || long > maildir.MaxLater {
			return usageError(c, fmt.Errorf("--for is %s, but must be greater than 0 and at most 30d, such as 2h or 3d", format.Quote(*given)))
		}
		p.step = format.NewStep()
		return p.atDesk(c.Context(), f, mine, ids, func(ctx context.Context, d *deskWork) error {
			for i := range d.IDs {
				if err := d.needNoNewer(ctx, i); err != nil {
					return err
				}
			}
			if err := p.confirmMessages(ctx, d, "Hide", d.IDs); err != nil {
				return err
			}
			for _, id := range d.IDs {
				ask := mcpserver.LaterAsk{Agent: d.Person, Thread: id, For: long}
				err := askVerb(ctx, d, "later", ask, func(a *maildir.Deferred) error {
					d.Say(nil, "hidden for %s: %s", d.In(a.Until.Format(time.RFC3339)), cli.Line(a.Subject))
					return nil
				})
				if err != nil {
					return err
				}
			}
			if !d.json {
				p.tellNext(ctx, d, "")
			}
			return nil
		})
	}
	return c
}

// needNoNewer returns an error if the argument at index i is a row of a list, and an unread message has arrived in the
// row's thread since the list was printed.
func (d *deskWork) needNoNewer(ctx context.Context, i int) error {
	newer := ""
	_, err := d.messagesOf(ctx, i, func(m *mail.Delivery) bool {
		if d.threads[i].isNewer(m) {
			newer = d.ShortID(m.ID)
		}
		return false
	})
	if err == nil && newer != "" {
		err = fmt.Errorf("nothing was hidden, because %s arrived in the thread after the list was printed. To read it: mailtree read %s",
			newer, newer)
	}
	return err
}
