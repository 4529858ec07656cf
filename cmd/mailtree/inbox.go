package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"mailtree/cmd/mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/index"
	"mailtree/maildir/lazy"
	"mailtree/mcp/mail"
)

func inboxCommand(p *program) *cobra.Command {
	var o inboxOptions
	c := &cobra.Command{
		Use:   "inbox [AGENT]",
		Short: "List your mail, or an agent's mail",
		Long: "List your mail, or an agent's mail, newest first. Unread messages are bold and marked with \"*\", messages that need\n" +
			"an acknowledgement with \"!\", and archived messages (--archived) with \"a\". The command does not mark anything as\n" +
			"read.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: p.completeAgent,
	}
	f := p.addDeskFlags(c)
	c.Flags().BoolVarP(&o.unread, "unread", "u", false, "only unread messages")
	c.Flags().BoolVar(&o.ack, "ack", false, "only messages still awaiting acknowledgement by you or your recipients")
	c.Flags().BoolVar(&o.archived, "archived", false, "include archived messages")
	c.Flags().StringVar(&o.since, "since", "", "only messages after this time, such as 2h (2 hours ago), yesterday or \"2026-01-31 15:04\"")
	c.Flags().UintVarP(&o.limit, "limit", "n", maildir.DefaultPage, "maximum number of messages")
	p.addMoreFlags(c, f, &o.cursor)
	c.Flags().StringVar(&o.asOf, "as-of", "",
		"show the inbox as it was at this time, such as 2h (2 hours ago), yesterday or \"2026-01-31 15:04\", or in this "+
			"commit (see log)")
	for _, now := range []string{"unread", "ack", "archived"} {
		c.MarkFlagsMutuallyExclusive("as-of", now)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		who := whose(len(args) == 0)
		if err := cmp.Or(o.readMoments(c), needLimit(c, o.limit)); err != nil {
			return err
		}
		return p.atDesk(c.Context(), f, who, nil, func(ctx context.Context, d *deskWork) error {
			o.agent = d.Person
			if len(args) > 0 {
				o.agent = args[0]
			}
			if o.asOf != "" {
				return readURI(ctx, d, o.uri(d), func(in *mail.Inbox) error { return showInbox(d, in) })
			}
			return call(ctx, d, "check_my_messages", o.args(d), func(in *mail.Inbox) error { return showInbox(d, in) })
		})
	}
	return c
}

type inboxOptions struct {
	agent, since, cursor  string
	asOf                  string
	unread, ack, archived bool
	limit                 uint
}

// commitName matches values of --as-of that are treated as commits.
var commitName = lazy.Regexp(`^[0-9a-fA-F]{4,40}$`)

// readMoments converts the times in the flags to the form that the tools accept.
func (o *inboxOptions) readMoments(c *cobra.Command) error {
	for name, given := range map[string]*string{"since": &o.since, "as-of": &o.asOf} {
		at, ok := cli.Moment(*given, time.Now())
		switch {
		case ok:
			*given = at
		case c.Flags().Changed(name) && !(name == "as-of" && commitName().MatchString(*given)):
			return notMoment(c, name, *given)
		}
	}
	return nil
}

// moment converts the time in a flag to the form that the tools accept.
func moment(c *cobra.Command, flag, given string) (string, error) {
	at, ok := cli.Moment(given, time.Now())
	if !ok {
		return "", notMoment(c, flag, given)
	}
	return at, nil
}

// notMoment returns the error for a flag whose value is not a time.
func notMoment(c *cobra.Command, flag, given string) error {
	how := `a time such as 2h (2 hours ago), yesterday or "2026-01-31 15:04"`
	if flag == "as-of" {
		how += ", or a commit"
	}
	return usageError(c, fmt.Errorf("--%s is %q, but must be %s", flag, given, how))
}

// needLimit returns an error if --limit is 0.
func needLimit(c *cobra.Command, limit uint) error {
	if limit == 0 {
		return usageError(c, errors.New("--limit is 0, but must be at least 1"))
	}
	return nil
}

// uri returns the URI of the resource that lists the inbox, with the given options.
func (o *inboxOptions) uri(d *deskWork) string {
	q := "?project=" + url.PathEscape(d.Slug) + "&limit=" + strconv.FormatUint(uint64(o.limit), 10)
	for name, text := range map[string]string{"as_of": o.asOf, "since_ts": o.since, "cursor": o.cursor} {
		if text != "" {
			q += "&" + name + "=" + url.PathEscape(text)
		}
	}
	return "resource://inbox/" + url.PathEscape(o.agent) + q
}

func (o *inboxOptions) args(d *deskWork) map[string]any {
	a := map[string]any{"project_key": d.Slug, "agent_name": o.agent, "limit": o.limit}
	for name, text := range map[string]string{"since_ts": o.since, "cursor": o.cursor} {
		if text != "" {
			a[name] = text
		}
	}
	for name, on := range map[string]bool{"unread_only": o.unread, "awaiting_ack": o.ack, "archived": o.archived} {
		if on {
			a[name] = true
		}
	}
	return a
}

func showInbox(d *deskWork, in *mail.Inbox) error {
	head := fmt.Sprintf("%s in %s: %d unread of %d", in.Agent, in.Project, in.Unread, in.Total)
	if in.Archived > 0 {
		head += fmt.Sprintf(", %d archived", in.Archived)
	}
	if d.Width > 0 && len(in.Messages) > 0 {
		head += " (* unread, ! needs an acknowledgement)"
	}
	d.Say(d.Faint, "%s", head)
	ids := make([]string, len(in.Messages))
	for i := range in.Messages {
		ids[i] = in.Messages[i].ID
	}
	rows := make([]cli.Row, len(ids))
	for i, name := range d.number(ids) {
		rows[i] = d.deliveryRow(&in.Messages[i], name)
	}
	d.Table(rows)
	if more := d.tellMore("inbox", in.Next); more != "" {
		d.Tell("%s\n", more)
	}
	return nil
}

// deliveryRow returns the row of a message in a list of mail. Its cells are the marks, the name of the row (see
// deskWork.number), the urgency, the agents, the subject and the age.
func (d *deskWork) deliveryRow(m *mail.Delivery, name string) cli.Row {
	who := d.people("", []string{m.From})
	if m.Kind == index.KindSent {
		who = d.people("to ", m.To)
	}
	return cli.Row{
		Cells:  []string{stateOf(m), name, urgency(d.Screen, m.Importance), who, cli.Line(m.Subject), d.Ago(m.Created)},
		Strong: !m.Read && m.Kind != index.KindSent,
	}
}

// stateOf returns the marks for a message: "!" if the user still has to acknowledge it, otherwise "*" if it is unread,
// and "a" if it is archived.
func stateOf(m *mail.Delivery) string {
	state := ""
	switch {
	case m.Kind == index.KindSent:
	case m.AckRequired && !m.Acked:
		state = "!"
	case !m.Read:
		state = "*"
	}
	if m.Archived {
		state += "a"
	}
	return state
}
