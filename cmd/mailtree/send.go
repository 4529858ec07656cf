package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/format"
	mcpserver "mailtree/mcp"
	"mailtree/mcp/mail"
)

func sendCommand(p *program) *cobra.Command {
	o := &sendOptions{tool: "send_message"}
	c := &cobra.Command{
		Use:   "send AGENT... [TEXT]",
		Short: "Send a message",
		Long: "Send a message to agents or, with --all, to every agent of the project. The last argument is the text if it contains\n" +
			"a space or does not resemble an agent's name. Otherwise the text comes from -m, standard input, or your editor\n" +
			"(VISUAL or EDITOR), where you can also change To and Subject. Without --subject, the first heading or line of the\n" +
			"text becomes the subject.",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: p.completeAgents,
	}
	f := p.addDeskFlags(c)
	p.addSendFlags(c, o)
	c.Flags().StringVarP(&o.subject, "subject", "s", "", "the subject")
	c.Flags().StringVar(&o.thread, "thread", "", "the thread that the message belongs to")
	all := c.Flags().Bool("all", false, "send to every agent of the project except you")
	c.RunE = func(c *cobra.Command, args []string) error {
		if n := len(args) - 1; n >= 0 && !c.Flags().Changed("message") && strings.ContainsAny(args[n], " \t\n") {
			o.text, args = &args[n], args[:n]
		}
		o.to = append(o.to, args...)
		if o.text == nil && len(args) > 0 && len(o.to) > 1 && !c.Flags().Changed("message") {
			o.word = args[len(args)-1]
		}
		if *all == (len(o.to) > 0) {
			return usageError(c, errors.New("specify the agents to write to, or use --all"))
		}
		return p.writeMessage(c, f, o, "")
	}
	return c
}

func replyCommand(p *program) *cobra.Command {
	o := &sendOptions{tool: "reply_message"}
	c := &cobra.Command{
		Use:   "reply ID [TEXT]",
		Short: "Reply to a message",
		Long: "Reply to a message in its thread, and mark the message as read and acknowledged. The reply goes to everyone on the\n" +
			"message: the sender and all other recipients. With --only, it goes only to the sender, and so does a reply to mail\n" +
			"from another domain unless you use --all. The text is the second argument, or comes from -m, standard input, or your\n" +
			"editor (VISUAL or EDITOR), where you can also change To and Subject.",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: p.completeMessage,
	}
	f := p.addDeskFlags(c)
	p.addSendFlags(c, o)
	only := c.Flags().Bool("only", false, "reply only to the sender")
	all := c.Flags().Bool("all", false, "reply to everyone, even if the message came from another domain")
	c.MarkFlagsMutuallyExclusive("only", "all", "to")
	c.RunE = func(c *cobra.Command, args []string) error {
		switch o.audience = maildir.EveryoneInside; {
		case *all:
			o.audience = maildir.Everyone
		case *only:
			o.audience = ""
		}
		if strings.ContainsAny(args[0], " \t\n") {
			return &exitError{exitUsage, fmt.Errorf("%q is not a row number or message id: use `mailtree reply ID TEXT`", args[0])}
		}
		if len(args) == 2 {
			if c.Flags().Changed("message") {
				return usageError(c, errors.New("the text is specified twice, as an argument and with -m: use only one of them"))
			}
			o.text = &args[1]
		}
		return p.writeMessage(c, f, o, args[0])
	}
	return c
}

// sendOptions are the arguments and flags of `send` and `reply`.
type sendOptions struct {
	tool                        string
	text                        *string // the text from the command line; nil if there is none
	word                        string  // the last argument, if it may be either the text or an agent's name
	from                        string  // the sending agent, by name or address; empty means the user's agent
	importance, subject, thread string
	html                        string // the text in HTML
	to, cc, bcc, files          []string
	ack, textOnly               bool
	audience                    maildir.Audience // the recipients of a reply if the user has not specified any
	sent                        func(*mail.Sent) // receives the result; if nil, the result is printed
}

func (p *program) addSendFlags(c *cobra.Command, o *sendOptions) {
	c.Flags().StringP("message", "m", "", "the text, in Markdown")
	c.Flags().StringVar(&o.from, "from", "", "the sending agent or mailbox, by name or address (default: you)")
	c.Flags().BoolVar(&o.textOnly, "text-only", false, "send plain text instead of Markdown")
	c.Flags().StringVar(&o.html, "html-body", "", "an HTML version of the text, sent unchanged")
	c.Flags().StringSliceVar(&o.to, "to", nil, "recipients")
	c.Flags().StringSliceVar(&o.cc, "cc", nil, "copy recipients")
	c.Flags().StringSliceVar(&o.bcc, "bcc", nil, "blind copy recipients")
	c.Flags().StringVarP(&o.importance, "importance", "i", "", "low, normal, high or urgent")
	c.Flags().BoolVar(&o.ack, "ack", false, "request an acknowledgement")
	c.Flags().StringArrayVarP(&o.files, "attach", "a", nil, "a file to attach")
	all := []cobra.Completion{format.Low, format.Normal, format.High, format.Urgent}
	_ = c.RegisterFlagCompletionFunc("importance", cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"from", "to", "cc", "bcc"} {
		_ = c.RegisterFlagCompletionFunc(name, p.completeAgents)
	}
}

// writeMessage gets the text of the message from the command line, standard input or the user's editor. It sends the
// message to o.to, or to all agents if o.to is empty. If id is not "", the message is a reply to the message with that
// id.
func (p *program) writeMessage(c *cobra.Command, f *deskFlags, o *sendOptions, id string) error {
	if o.importance != "" && !format.ValidImportance(o.importance) {
		return usageError(c, fmt.Errorf("--importance is %q, but must be low, normal, high or urgent", o.importance))
	}
	if o.textOnly && o.html != "" {
		return usageError(c, errors.New("a message cannot have both --text-only and --html-body: use only one of them"))
	}
	if c.Flags().Changed("message") {
		text := c.Flag("message").Value.String()
		o.text = &text
	}
	ctx := c.Context()
	var body *written
	var draft string
	var err error
	if cli.IsTerminal(p.std.in) {
		if err := p.takeWord(ctx, f, o); err != nil {
			return err
		}
	}
	switch {
	case o.text != nil:
		body = &written{text: *o.text}
	case !cli.IsTerminal(p.std.in):
		if body, err = p.readText(); err != nil || strings.TrimSpace(body.text) != "" {
			break
		}
		if err = p.takeWord(ctx, f, o); err == nil && o.text != nil {
			body.text = *o.text
		} else if err == nil {
			if id == "" && len(o.to) > 0 {
				if _, _, err := p.draftOf(ctx, f, o, id); err != nil {
					return maybeText(err, o.to)
				}
			}
			return noText(o.to, id)
		}
	default:
		if draft, id, err = p.draftOf(ctx, f, o, id); err == nil {
			body, err = p.editText(ctx, "message.md", draft)
		} else if id == "" {
			err = maybeText(err, o.to)
		}
	}
	if err != nil {
		return err
	}
	misplaced := body.file != "" && belowScissors(body.text) != belowScissors(draft)
	if body.file != "" || strings.Contains(body.text, "\n"+scissors) { // an edited draft, or a draft that could not be sent earlier
		if err := o.takeDraft(body); err != nil {
			return body.settle(err)
		}
	}
	switch empty := strings.TrimSpace(body.text) == ""; {
	case empty && misplaced:
		return body.settle(errors.New("nothing was sent: the text is below the scissors line. Move it above that line"))
	case empty:
		_ = body.settle(nil)
		return errors.New("nothing was sent: the text is empty")
	}
	if err := needUTF8(body.text + o.subject + o.html); err != nil {
		return body.settle(err)
	}
	return body.settle(p.atDeskOf(ctx, f, o.from, ids(id), func(ctx context.Context, d *deskWork) error {
		if err := o.address(ctx, p, d); err != nil {
			return err
		}
		args, err := o.args(ctx, p, d, body.text)
		if err != nil {
			return err
		}
		return call(ctx, d, o.tool, args, func(s *mail.Sent) error {
			if o.sent != nil {
				o.sent(s)
				return nil
			}
			showSent(d, s)
			did := ""
			if s.Acked {
				did = "acknowledged · "
			}
			p.tellNext(ctx, d, did)
			return nil
		})
	}))
}

// takeWord treats the last argument as the text if the argument is a single word that does not resemble an agent's
// name.
func (p *program) takeWord(ctx context.Context, f *deskFlags, o *sendOptions) error {
	if o.word == "" || strings.Contains(o.word, "@") {
		return nil
	}
	return p.atDeskOf(ctx, f, o.from, nil, func(ctx context.Context, d *deskWork) error {
		ask := mcpserver.Envelope{Agent: d.Person, To: []string{o.word}}
		err := d.Ask(ctx, cli.Of(d.Slug, "prepare"), ask, &mcpserver.Envelope{})
		refused := &cli.Refusal{}
		if errors.As(err, &refused) && refused.NotFound() && !strings.Contains(refused.Text, "Did you mean") {
			o.text, o.to = &o.word, o.to[:len(o.to)-1]
		}
		return nil
	})
}

// noText returns the error for a message without text. The text may be among the arguments that were taken for agents.
func noText(to []string, id string) error {
	how := "put the text last, or pass it with -m"
	switch {
	case id != "":
		how = fmt.Sprintf("%q is treated as a message id, as in `mailtree reply ID TEXT`", id)
	case len(to) > 0:
		how = fmt.Sprintf("all arguments were treated as recipients (%s). Pass a one-word text with -m", strings.Trim(fmt.Sprintf("%q", to), "[]"))
	}
	return fmt.Errorf("nothing was sent, because there is no text: %s", how)
}

// maybeText adds a hint to err if the last of several names is not an agent, because the last argument may have been
// meant as the text.
func maybeText(err error, to []string) error {
	refused := &cli.Refusal{}
	if len(to) < 2 || !errors.As(err, &refused) || !refused.NotFound() {
		return err
	}
	last := strconv.Quote(to[len(to)-1])
	if !strings.Contains(refused.Text, last) {
		return err
	}
	return fmt.Errorf("%w If %s is the text, pass it with -m", err, last)
}

// ids returns a list that contains the id, or an empty list if the id is "".
func ids(id string) []string {
	if id == "" {
		return nil
	}
	return []string{id}
}

// draftOf checks the recipients. It returns the initial text for the editor, and the full id of the message that the
// user is replying to. It also stores the project in f, because a row number may refer to another project later.
func (p *program) draftOf(ctx context.Context, f *deskFlags, o *sendOptions, id string) (draft, full string, err error) {
	return draft, full, p.atDeskOf(ctx, f, o.from, ids(id), func(ctx context.Context, d *deskWork) error {
		f.project = d.Slug
		if err := o.everybody(ctx, d); err != nil {
			return err
		}
		quoted := ""
		if len(d.IDs) > 0 {
			full = d.IDs[0]
			var of mail.MessageResource
			if err := d.Read(ctx, "resource://message/"+url.PathEscape(full)+"?project="+d.Slug, &of); err != nil {
				return err
			}
			quoted = quote(d, &of.Message)
		}
		e, err := o.envelope(ctx, d)
		if err != nil {
			return err
		}
		o.subject = e.Subject
		draft = formatDraft(e, quoted)
		return nil
	})
}

// envelope returns the recipients and the subject of the message.
func (o *sendOptions) envelope(ctx context.Context, d *deskWork) (*mcpserver.Envelope, error) {
	ask := mcpserver.Envelope{
		Agent: d.Person, Answers: strings.Join(d.IDs, ""), To: o.to, CC: o.cc, BCC: o.bcc, Subject: o.subject, Audience: o.audience,
	}
	e, prepare := &mcpserver.Envelope{}, cli.Of(d.Slug, "prepare")
	err := d.Ask(ctx, prepare, ask, e)
	if ask.Audience == "" || len(ask.To) > 0 || err == nil {
		return e, err
	}
	if ask.Audience = ""; d.Ask(ctx, prepare, ask, e) == nil { // a reply to the sender alone would work
		err = fmt.Errorf("%w To reply only to the sender, use --only", err)
	}
	return nil, err
}

// address sets the recipients of a reply if the user has not specified any. If the user may have meant a different
// message, address asks the user to confirm the reply.
func (o *sendOptions) address(ctx context.Context, p *program, d *deskWork) error {
	if len(d.IDs) == 0 || !d.unsure && (len(o.to) > 0 || o.audience == "") {
		return nil
	}
	e, err := o.envelope(ctx, d)
	if err != nil {
		return err
	}
	if len(o.to) == 0 && o.audience != "" {
		o.to, o.cc = e.To, e.CC
	}
	about := cli.Line(strings.TrimPrefix(e.Subject, "Re: "))
	return p.confirm(d, fmt.Sprintf(`Reply to %s about "%s"?`, listNames(slices.Concat(e.To, e.CC, e.BCC)), about))
}

// everybody adds every other agent of the project to o.to if the message is for all agents.
func (o *sendOptions) everybody(ctx context.Context, d *deskWork) (err error) {
	if len(o.to) == 0 && len(d.IDs) == 0 {
		o.to, err = everybodyElse(ctx, d)
	}
	return err
}

// args returns the arguments of the tool call.
func (o *sendOptions) args(ctx context.Context, p *program, d *deskWork, body string) (map[string]any, error) {
	if err := o.everybody(ctx, d); err != nil {
		return nil, err
	}
	a := map[string]any{"project_key": d.Slug, "from_agent": d.Person, "body_md": body}
	if len(d.IDs) > 0 {
		a["reply_to_message_id"] = d.IDs[0]
	}
	if o.subject != "" || len(d.IDs) == 0 {
		a["subject"] = o.subject
	}
	files, err := p.filesToAttach(d, o.files)
	if err != nil {
		return nil, err
	}
	for name, list := range map[string][]string{"to": o.to, "cc": o.cc, "bcc": o.bcc, "attachments": files} {
		if len(list) > 0 {
			a[name] = list
		}
	}
	for name, text := range map[string]string{"importance": o.importance, "thread_id": o.thread, "html_body": o.html} {
		if text != "" {
			a[name] = text
		}
	}
	for name, set := range map[string]bool{"ack_required": o.ack, "text_only": o.textOnly} {
		if set {
			a[name] = true
		}
	}
	return a, nil
}

// everybodyElse lists all agents in the project except the user's own agent.
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
		return nil, &exitError{exitNothing, fmt.Errorf("project %s has no other agents", d.Slug)}
	}
	return names, nil
}

func showSent(d *deskWork, s *mail.Sent) {
	to := slices.Concat(s.Recipients.To, s.Recipients.CC, s.Recipients.BCC)
	d.Say(nil, "sent %s to %s: %s", d.ShortID(s.ID), d.people("", to), cli.Line(s.Subject))
	d.tellQueued(s.Queued, "delivered")
	for _, note := range s.Notes {
		d.Tell("%s\n", d.Faint(cli.Line(note)))
	}
}
