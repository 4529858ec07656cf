package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"mailtree/cli"
	"mailtree/maildir/format"
	"mailtree/mcp/mail"
)

func sendCommand(p *program) *cobra.Command {
	var o sendOptions
	var subject, thread string
	var all bool
	c := &cobra.Command{
		Use:   "send AGENT...",
		Short: "Send a message",
		Long: "Send a message to agents, or with --all to every agent of the project. The text comes from -m, else from standard\n" +
			"input, else from your editor (VISUAL or EDITOR). Without --subject, its first heading or line is the subject.",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: p.completeAgents,
	}
	f := p.addDeskFlags(c)
	p.addSendFlags(c, &o)
	c.Flags().StringVarP(&subject, "subject", "s", "", "the subject")
	c.Flags().StringVar(&thread, "thread", "", "the thread that it belongs to")
	c.Flags().BoolVar(&all, "all", false, "send it to every agent of the project but you")
	c.RunE = func(c *cobra.Command, to []string) error {
		if all == (len(to) > 0) {
			return usageError(c, fmt.Errorf("name the agents to write to, or give --all"))
		}
		body, err := o.compose(c, p)
		if err != nil {
			return err
		}
		return body.settle(p.atDesk(c.Context(), f, mine, nil, func(ctx context.Context, d *deskWork) error {
			if all {
				if to, err = everybodyElse(ctx, d); err != nil {
					return err
				}
			}
			args := o.args(d, body.text)
			args["from_agent"], args["to"], args["subject"] = d.Person, to, subject
			if thread != "" {
				args["thread_id"] = thread
			}
			return call(ctx, d, "send_message", args, func(s *mail.Sent) error { return showSent(d, s) })
		}))
	}
	return c
}

func replyCommand(p *program) *cobra.Command {
	var o sendOptions
	var to []string
	c := &cobra.Command{
		Use:   "reply ID",
		Short: "Answer a message",
		Long: "Answer a message, in its thread. The answer goes to its sender, unless --to names others. The text comes from -m,\n" +
			"else from standard input, else from your editor (VISUAL or EDITOR).",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: p.completeMessage,
	}
	f := p.addDeskFlags(c)
	p.addSendFlags(c, &o)
	c.Flags().StringSliceVar(&to, "to", nil, "whom it goes to in place of the sender")
	_ = c.RegisterFlagCompletionFunc("to", p.completeAgents)
	c.RunE = func(c *cobra.Command, ids []string) error {
		body, err := o.compose(c, p)
		if err != nil {
			return err
		}
		return body.settle(p.atDesk(c.Context(), f, mine, ids, func(ctx context.Context, d *deskWork) error {
			args := o.args(d, body.text)
			args["from_agent"], args["reply_to_message_id"] = d.Person, d.IDs[0]
			if len(to) > 0 {
				args["to"] = to
			}
			return call(ctx, d, "reply_message", args, func(s *mail.Sent) error { return showSent(d, s) })
		}))
	}
	return c
}

// sendOptions are the flags that `send` and `reply` share.
type sendOptions struct {
	text, importance string
	cc, bcc, files   []string
	ack              bool
}

func (p *program) addSendFlags(c *cobra.Command, o *sendOptions) {
	c.Flags().StringVarP(&o.text, "message", "m", "", "the text, in Markdown")
	c.Flags().StringSliceVar(&o.cc, "cc", nil, "who gets a copy")
	c.Flags().StringSliceVar(&o.bcc, "bcc", nil, "who gets a copy that nobody else knows of")
	c.Flags().StringVarP(&o.importance, "importance", "i", "", "low, normal, high or urgent")
	c.Flags().BoolVar(&o.ack, "ack", false, "ask to have it acknowledged")
	c.Flags().StringArrayVarP(&o.files, "attach", "a", nil, "a file to send along")
	all := []cobra.Completion{format.Low, format.Normal, format.High, format.Urgent}
	_ = c.RegisterFlagCompletionFunc("importance", cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"cc", "bcc"} {
		_ = c.RegisterFlagCompletionFunc(name, p.completeAgents)
	}
}

// compose returns the text of -m, or of standard input or the editor.
func (o *sendOptions) compose(c *cobra.Command, p *program) (*written, error) {
	if o.importance != "" && !format.ValidImportance(o.importance) {
		return nil, usageError(c, fmt.Errorf("--importance is %s: give low, normal, high or urgent", o.importance))
	}
	var given *string
	if c.Flags().Changed("message") {
		given = &o.text
	}
	return p.compose(c.Context(), given, "")
}

func (o *sendOptions) args(d *deskWork, body string) map[string]any {
	a := map[string]any{"project_key": d.Slug, "body_md": body}
	var files []string
	for _, f := range o.files {
		if at, err := filepath.Abs(f); err == nil {
			f = at
		}
		files = append(files, f)
	}
	for name, list := range map[string][]string{"cc": o.cc, "bcc": o.bcc, "attachments": files} {
		if len(list) > 0 {
			a[name] = list
		}
	}
	if o.importance != "" {
		a["importance"] = o.importance
	}
	if o.ack {
		a["ack_required"] = true
	}
	return a
}

// everybodyElse lists the agents of the project except the person.
func everybodyElse(ctx context.Context, d *deskWork) (names []string, err error) {
	for cursor := ""; ; {
		ask := map[string]any{"project_key": d.Slug, "active_only": false}
		if cursor != "" {
			ask["cursor"] = cursor
		}
		var page mail.Directory
		if err := d.Call(ctx, "list_agents", ask, &page); err != nil {
			return nil, err
		}
		for _, a := range page.Agents {
			names = append(names, a.Name)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == d.Person })
	if len(names) == 0 {
		return nil, &exitError{exitNothing, fmt.Errorf("nobody else is in project %s", d.Slug)}
	}
	return names, nil
}

func showSent(d *deskWork, s *mail.Sent) error {
	to := slices.Concat(s.Recipients.To, s.Recipients.CC, s.Recipients.BCC)
	d.Printf("sent %s to %s: %s\n", d.ShortID(s.ID), listNames(to), cli.Line(s.Subject))
	for _, note := range s.Notes {
		d.Printf("%s\n", d.Faint(cli.Line(note)))
	}
	return nil
}
