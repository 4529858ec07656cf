package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/maildir"
)

func undoCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "undo [ID]",
		Short: "Take back what you did last, or last to a message",
		Long: "Take back what you did last, or last to this message: a message sent, changed, read, acknowledged, archived or\n" +
			"deleted, paths claimed or released. Nothing else of the same moment changes. A message that was sent is removed\n" +
			"for everybody; who had read it is told, and named here. What was released is claimed again where nobody else has\n" +
			"it. Called again, it takes back what you did before that.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeMessage,
	}
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, ids []string) error {
		return p.atDesk(c.Context(), f, mine, ids, func(ctx context.Context, d *deskWork) error {
			return askAbout(ctx, d, "undo", strings.Join(d.IDs, ""), func(a *maildir.Undone) error {
				of := d.ShortID(a.ID)
				if len(a.Patterns) > 0 {
					of = listNames(a.Patterns)
				}
				d.Printf("undone: %s of %s\n", a.Operation, of)
				if len(a.Patterns) > 0 && a.ID != "" {
					d.Printf("the message that told of it is withdrawn\n")
				}
				if len(a.Readers) > 0 {
					d.Printf("it was read by %s, who are told\n", listNames(a.Readers))
				}
				return nil
			})
		})
	}
	return c
}
