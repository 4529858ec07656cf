package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	mcpserver "mailtree/mcp"
)

func editCommand(p *program) *cobra.Command {
	c := &cobra.Command{
		Use:   "edit ID",
		Short: "Change a message for everyone",
		Long: "Change a message for everyone. In your editor (VISUAL or EDITOR), you can change the subject, the importance, the text,\n" +
			"and whether the message needs an acknowledgement. To change the text or the subject without an editor, use -m or -s.\n" +
			"If standard input is not a terminal, the command reads the changed message from it, in the format that --print shows.\n" +
			"The author and the agents that had read the message are notified. Your own message stays verified; another author's\n" +
			"message becomes unverified. To undo the change, use `mailtree undo`.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: p.completeMessage,
	}
	f := p.addDeskFlags(c)
	show := c.Flags().Bool("print", false, "print the editable part without changing anything")
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
			inEditor := cli.IsTerminal(p.std.in) && !c.Flags().Changed("message") && !c.Flags().Changed("subject")
			if inEditor { // the editor shows the message, so the user does not have to confirm it
				d.unsure = false
			}
			if err := p.confirmMessages(ctx, d, "Change for everyone:", d.IDs); err != nil {
				return err
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
		// Connect again, because the server may have exited while the user was writing.
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

// showAmendable prints the part of a message that the user can edit. If the output is a terminal, it escapes characters
// that control a terminal.
func showAmendable(d *deskWork, a *maildir.Amendable) error {
	if d.Width > 0 {
		a.Text = cli.Text(a.Text)
	}
	d.Printf("%s", a.Text)
	return nil
}

func showAmended(d *deskWork, a *maildir.Amended) error {
	if a.Same {
		d.Tell("no changes to %s\n", d.ShortID(a.ID))
		return nil
	}
	d.Tell("changed %s: %s\n", d.ShortID(a.ID), cli.Line(a.Subject))
	if !a.Sealed && slices.Contains(a.Readers, a.From) {
		d.Tell("Author notified: %s.\n", cli.Line(a.From))
	}
	readers := slices.DeleteFunc(slices.Clone(a.Readers), func(name string) bool { return name == a.From })
	switch len(readers) {
	case 0:
	case 1:
		d.Tell("Reader notified: %s.\n", listNames(readers))
	default:
		d.Tell("Readers notified: %s.\n", listNames(readers))
	}
	d.tellOutside(a.Outside, "the old text")
	if !a.Sealed {
		d.Tell("Marked unverified: the text is no longer %s's.\n", cli.Line(a.From))
	}
	for _, path := range a.Left {
		d.Tell("%s was left unchanged, because it was edited by hand.\n", cli.Line(path))
	}
	return nil
}

// withFlags returns the editable part of a message, with the text from -m and the subject from -s.
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

// changeText returns the text from standard input. If standard input is a terminal, it lets the user edit the current
// text instead.
func (p *program) changeText(ctx context.Context, name, text string) (*written, error) {
	if cli.IsTerminal(p.std.in) {
		return p.editText(ctx, name, text)
	}
	w, err := p.readText()
	if err == nil {
		err = needUTF8(w.text)
	}
	if err == nil && strings.TrimSpace(w.text) == "" {
		err = errors.New("nothing was changed: standard input is empty, and there is no terminal for an editor. Pass the text " +
			"with -m, or the subject with -s")
	}
	return w, err
}
