package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"mailtree/cli"
	"mailtree/maildir"
	"mailtree/maildir/storedir"
	"mailtree/mcp/mail"
)

// maxWaits is the largest number of messages that `mailtree` without arguments lists.
const maxWaits = 10

// showWaits is `mailtree` without arguments: it prints the mail that waits for the person in the project
// of this folder, and the next commands. Without a store it prints the help. Outside a project it prints
// the list of projects, and how to make one for the code base.
func (p *program) showWaits(c *cobra.Command) error {
	if !storedir.IsStore(p.cfg.Store) {
		return c.Help()
	}
	ctx := c.Context()
	err := p.atDesk(ctx, &deskFlags{}, nobodys, nil, p.waits)
	if refused := (&cli.Refusal{}); errors.As(err, &refused) && refused.NotFound() {
		if caller, err := hello(p.env, stdioOptions{}); err == nil && caller.WorkTree != "" {
			fmt.Fprintf(p.std.out, "%s has no mail yet: `mailtree new project` makes its project\n\n", cli.Line(caller.WorkTree))
		}
		const asJSON = false
		return p.listProjects(ctx, asJSON)
	}
	return err
}

// waits prints the waiting mail. It creates no agent: for a person who is no agent here, no mail waits.
func (p *program) waits(ctx context.Context, d *deskWork) error {
	me, err := p.me()
	if err != nil {
		return err
	}
	var unread, owed mail.Inbox
	ask := map[string]any{"project_key": d.Slug, "agent_name": me, "limit": maxWaits, "unread_only": true}
	err = d.Call(ctx, "check_my_messages", ask, &unread)
	if err == nil {
		delete(ask, "unread_only")
		ask["awaiting_ack"] = true
		err = d.Call(ctx, "check_my_messages", ask, &owed)
	}
	if refused := (&cli.Refusal{}); err != nil && (!errors.As(err, &refused) || !refused.NotFound()) {
		return err
	}
	var rest maildir.Waits
	if err := d.Ask(ctx, cli.Of(d.Slug, "waiting"), me, &rest); err != nil {
		return err
	}
	rows, first := waitingRows(d, &unread, &owed)
	for _, u := range rest.Asleep {
		d.Printf("%s\n", cli.Line(u.String()))
	}
	if n := len(rest.Broken) + rest.MoreBroken; n > 0 {
		d.Printf("not valid: %s; `mailtree problems` says how to mend that\n", count(n, "file"))
	}
	if len(rows) == 0 {
		d.Printf("no mail waits for %s in %s\n\n", cli.Line(me), d.Slug)
		d.Printf("mailtree inbox | search WORD... | agents | claims | today | help\n")
		return nil
	}
	d.Printf("%s\n", d.Faint("waiting for "+cli.Line(me)+" in "+d.Slug+":"))
	d.Table(rows)
	more := unread.Unread
	for _, r := range rows {
		if r.Strong {
			more--
		}
	}
	if more > 0 {
		d.Printf("%s\n", d.Faint("and "+some(more, "more unread")))
	}
	d.Printf("\nmailtree read %s | inbox | agents | claims | today | help\n", first)
	return nil
}

// waitingRows returns a row for each message that is unread or to be acknowledged, each message once, and
// the id of the first.
func waitingRows(d *deskWork, unread, owed *mail.Inbox) (rows []cli.Row, first string) {
	seen := map[string]bool{}
	for _, in := range []*mail.Inbox{unread, owed} {
		for i := range in.Messages {
			m := &in.Messages[i]
			if seen[m.ID] {
				continue
			}
			seen[m.ID] = true
			rows = append(rows, deliveryRow(d.Screen, m, d.ShortID(m.ID)))
			if first == "" {
				first = d.ShortID(m.ID)
			}
		}
	}
	return rows, first
}
