package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	mcpserver "mailtree/mcp"
)

func yesCommand(p *program) *cobra.Command {
	const yes = true
	return p.decideCommand(&cobra.Command{
		Use:   "yes ID [TEXT]",
		Short: "Answer a question with yes",
		Long: "Answer the question in a message with \"Yes.\", followed by your text. The answer goes only to the message's author, and\n" +
			"marks the message as read and acknowledged. The command works only for verified mail from agents of this store. For\n" +
			"other mail, use `mailtree reply`.",
	}, yes)
}

func noCommand(p *program) *cobra.Command {
	const yes = false
	return p.decideCommand(&cobra.Command{
		Use:   "no ID [TEXT]",
		Short: "Answer a question with no",
		Long: "Answer the question in a message with \"No.\", followed by your text. The answer goes only to the message's author, and\n" +
			"marks the message as read and acknowledged. The command works only for verified mail from agents of this store. For\n" +
			"other mail, use `mailtree reply`.",
	}, yes)
}

// decideCommand turns c into a command that answers a question with yes or no.
func (p *program) decideCommand(c *cobra.Command, yes bool) *cobra.Command {
	c.Args = cobra.RangeArgs(1, 2)
	c.ValidArgsFunction = p.completeMessage
	f := p.addDeskFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		text := ""
		if len(args) == 2 {
			if text = args[1]; text == "" {
				return usageError(c, errors.New("the text is empty: write something, or omit the argument"))
			}
		}
		return p.atDesk(c.Context(), f, mine, args[:1], func(ctx context.Context, d *deskWork) error {
			what := map[bool]string{true: "Answer Yes to", false: "Answer No to"}[yes]
			if err := p.confirmMessages(ctx, d, what, d.IDs); err != nil {
				return err
			}
			ask := mcpserver.DecideAsk{Agent: d.Person, Decision: maildir.Decision{ID: d.IDs[0], Yes: yes, Text: text}}
			return askVerb(ctx, d, "decide", ask, func(a *maildir.Decided) error {
				d.Printf("%s  %s\n", d.people("", []string{a.Asker}), d.Bold(cli.Line(a.Subject)))
				d.Printf("%s\n", d.Markdown(cli.Text(a.Question), 0))
				d.Printf("%s\n%s\n", cli.Line(d.Person), d.Markdown(cli.Text(a.Body), 0))
				p.tellNext(ctx, d, "answered "+d.ShortID(a.ID)+" · ")
				return nil
			})
		})
	}
	return c
}
