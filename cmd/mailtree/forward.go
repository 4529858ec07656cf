package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	mcpserver "mailtree/mcp"
)

func forwardCommand(p *program) *cobra.Command {
	var files []string
	c := &cobra.Command{
		Use:   "forward ID AGENT [TEXT]",
		Short: "Forward a message to another agent",
		Long: "Forward a message to another agent. The new message contains your text, followed by the quoted original with its\n" +
			"author, time and attachments. It starts a new thread, and replies to it come to you. Forwarding does not answer,\n" +
			"acknowledge or archive the original.",
		Args:              cobra.RangeArgs(2, 3),
		ValidArgsFunction: p.completeForward,
	}
	f := p.addDeskFlags(c)
	c.Flags().StringArrayVarP(&files, "attach", "a", nil, "another file to attach")
	c.RunE = func(c *cobra.Command, args []string) error {
		text := strings.Join(args[2:], "")
		if err := needUTF8(text); err != nil {
			return err
		}
		return p.atDesk(c.Context(), f, mine, args[:1], func(ctx context.Context, d *deskWork) error {
			attached, err := p.filesToAttach(d, files)
			if err != nil {
				return err
			}
			if err := p.confirmMessages(ctx, d, "Forward", d.IDs); err != nil {
				return err
			}
			ask := mcpserver.ForwardAsk{Agent: d.Person, ID: d.IDs[0], To: args[1:2], Text: text, Attachments: attached}
			return askVerb(ctx, d, "forward", ask, func(s *mcpserver.Forwarded) error {
				d.Say(nil, "forwarded as %s to %s: %s", d.ShortID(s.ID), d.people("", s.To), cli.Line(s.Subject))
				d.tellQueued(s.Queued, "delivered")
				d.Tell("%s\n", d.Faint("undo: "+d.undoing()))
				return nil
			})
		})
	}
	return c
}

// completeForward completes a message id, then an agent.
func (p *program) completeForward(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return p.completeMessage(c, args, begun)
	}
	return p.completeAgent(c, args[1:], begun)
}
