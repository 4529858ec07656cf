package main

import (
	"context"

	"github.com/spf13/cobra"

	"mailtree/cli"
	"mailtree/maildir"
	mcpserver "mailtree/mcp"
)

func editCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "edit ID",
		Short: "Change what a message says, for everybody",
		Long: "Change what a message says, for everybody, in your editor (VISUAL or EDITOR): its subject, importance, whether it is\n" +
			"to be acknowledged, and its text. Where standard input is no terminal, the changed text comes from there, in the\n" +
			"form that --print shows. Who had read the message is told, and so is its author. Your own message counts as\n" +
			"yours still; another's as unverified. `mailtree undo` takes it back.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: p.completeMessage,
	}
	f := p.addDeskFlags(c)
	show := c.Flags().Bool("print", false, "print what can be changed, and change nothing")
	c.RunE = func(c *cobra.Command, ids []string) error {
		ctx := c.Context()
		var now maildir.Amendable
		err := p.atDesk(ctx, f, mine, ids, func(ctx context.Context, d *deskWork) error {
			if *show {
				return askAbout(ctx, d, "amendable", d.IDs[0], func(a *maildir.Amendable) error { return showAmendable(d, a) })
			}
			return d.Ask(ctx, cli.Of(d.Slug, "amendable"), mcpserver.MessageAsk{Agent: d.Person, ID: d.IDs[0]}, &now)
		})
		if err != nil || *show {
			return err
		}
		changed, err := p.changeText(ctx, now.ID+".md", now.Text)
		if err != nil {
			return err
		}
		// Connect again: the server may have ended while the person wrote.
		return changed.settle(p.atDesk(ctx, f, mine, nil, func(ctx context.Context, d *deskWork) error {
			ask := mcpserver.MessageAsk{
				Agent:   d.Person,
				ID:      now.ID,
				Text:    changed.text,
				Version: now.Version,
			}
			return askVerb(ctx, d, "amend", ask, func(a *maildir.Amended) error { return showAmended(d, a) })
		}))
	}
	return c
}

// showAmendable prints the editable part of a message, unescaped unless a terminal would obey it.
func showAmendable(d *deskWork, a *maildir.Amendable) error {
	if d.Width > 0 {
		a.Text = cli.Text(a.Text)
	}
	d.Printf("%s", a.Text)
	return nil
}

func showAmended(d *deskWork, a *maildir.Amended) error {
	if a.Same {
		d.Printf("%s says what it said: nothing was changed\n", d.ShortID(a.ID))
		return nil
	}
	d.Printf("changed %s: %s\n", d.ShortID(a.ID), cli.Line(a.Subject))
	if len(a.Readers) > 0 {
		d.Printf("it was known to %s, who are told\n", listNames(a.Readers))
	}
	if !a.Sealed {
		d.Printf("it counts as unverified from now on: another wrote it\n")
	}
	for _, path := range a.Left {
		d.Printf("%s says something else, and stays as it is\n", cli.Line(path))
	}
	return nil
}

// changeText returns standard input, or the text as the person has edited it.
func (p *program) changeText(ctx context.Context, name, text string) (*written, error) {
	if cli.IsTerminal(p.std.in) {
		return p.editText(ctx, name, text)
	}
	return p.readText()
}
