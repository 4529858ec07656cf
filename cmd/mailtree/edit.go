package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mailtree/cli"
	"mailtree/maildir"
	mcpserver "mailtree/mcp"
)

func editCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "edit ID",
		Short: "Change what a message says, for everybody",
		Long: "Change what a message says, for everybody, in your editor (VISUAL or EDITOR): its subject, importance, whether it is\n" +
			"to be acknowledged, and its text. -m and -s change the text and the subject without an editor. Where standard\n" +
			"input is no terminal, the changed message comes from there, in the form that --print shows. Who had read the\n" +
			"message is told, and so is its author. Your own message counts as yours still; another's as unverified.\n" +
			"`mailtree undo` takes it back.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: p.completeMessage,
	}
	f := p.addDeskFlags(c)
	show := c.Flags().Bool("print", false, "print what can be changed, and change nothing")
	text := c.Flags().StringP("message", "m", "", "the new text, in Markdown")
	subject := c.Flags().StringP("subject", "s", "", "the new subject")
	for _, name := range []string{"message", "subject"} {
		c.MarkFlagsMutuallyExclusive("print", name)
	}
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
		var changed *written
		if c.Flags().Changed("message") || c.Flags().Changed("subject") {
			changed, err = withFlags(c.Flags(), now.Text, *text, *subject)
		} else {
			changed, err = p.changeText(ctx, now.ID+".md", now.Text)
		}
		if err != nil {
			return err
		}
		// Connect again: the server may have ended while the user wrote.
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

// showAmendable prints the editable part of a message. It escapes characters that control a terminal only if the
// output is a terminal.
func showAmendable(d *deskWork, a *maildir.Amendable) error {
	if d.Width > 0 {
		a.Text = cli.Text(a.Text)
	}
	d.Printf("%s", a.Text)
	return nil
}

func showAmended(d *deskWork, a *maildir.Amended) error {
	if a.Same {
		d.Tell("%s says what it said: nothing was changed\n", d.ShortID(a.ID))
		return nil
	}
	d.Tell("changed %s: %s\n", d.ShortID(a.ID), cli.Line(a.Subject))
	if !a.Sealed && slices.Contains(a.Readers, a.From) {
		d.Tell("%s, its author, is told.\n", cli.Line(a.From))
	}
	readers := slices.DeleteFunc(slices.Clone(a.Readers), func(name string) bool { return name == a.From })
	switch len(readers) {
	case 0:
	case 1:
		d.Tell("%s, who had read it, is told.\n", listNames(readers))
	default:
		d.Tell("%s, who had read it, are told.\n", listNames(readers))
	}
	d.tellOutside(a.Outside, "the old text")
	if !a.Sealed {
		d.Tell("It counts as not verified from now on, because %s did not write it so.\n", cli.Line(a.From))
	}
	for _, path := range a.Left {
		d.Tell("%s says something else, and stays as it is.\n", cli.Line(path))
	}
	return nil
}

// withFlags returns the editable part of a message with the text of -m, and the subject of -s.
func withFlags(f *pflag.FlagSet, now, text, subject string) (*written, error) {
	header := map[string]string{}
	if f.Changed("subject") {
		header["subject"] = subject
	}
	if !f.Changed("message") {
		_, text, _ = strings.Cut(now, "\n---\n")
	}
	data, err := json.Marshal(header)
	return &written{text: "---json\n" + string(data) + "\n---\n\n" + strings.TrimPrefix(text, "\n")}, err
}

// changeText returns standard input or, at a terminal, the text as the user has edited it.
func (p *program) changeText(ctx context.Context, name, text string) (*written, error) {
	if cli.IsTerminal(p.std.in) {
		return p.editText(ctx, name, text)
	}
	w, err := p.readText()
	if err == nil {
		err = needUTF8(w.text)
	}
	if err == nil && strings.TrimSpace(w.text) == "" {
		err = errors.New("nothing was changed: standard input is empty, and no terminal for an editor. Give the text with -m, " +
			"the subject with -s")
	}
	return w, err
}
