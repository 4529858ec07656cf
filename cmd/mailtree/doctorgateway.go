package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"mailtree/cli"
	"mailtree/gateway"
	"mailtree/maildir"
	"mailtree/maildir/address"
	mcpserver "mailtree/mcp"
)

// gateway names what keeps mail of other domains from coming in and ours from being believed, by the settings
// that doctor itself is given.
func (d *doctor) gateway(ctx context.Context, v *view) {
	g := &d.p.cfg.Gateway
	if len(g.Listen) == 0 && len(g.Allow) == 0 {
		return
	}
	before := d.bad
	for setting, name := range map[string]string{"GATEWAY_POSTMASTER": g.Postmaster, "GATEWAY_CATCHALL": g.CatchAll} {
		if name == "" {
			continue
		}
		there, err := maildir.HasMailbox(ctx, v.store, v.trees, name)
		if err != nil {
			d.say("%s: whether there is a mailbox %s cannot be told: %v", setting, name, err)
		} else if !there {
			d.say("%s names the mailbox %s, which does not exist, and mail for it is put off: `mailtree mailbox create %s`", setting, name, name)
		}
	}
	for _, l := range g.Listen {
		if _, err := os.Stat(filepath.Dir(l.Addr)); l.Network == "unix" && err != nil {
			d.say("GATEWAY_LISTEN: the folder of the socket %s cannot be used: %v", l.Addr, err)
		}
	}
	for _, domain := range d.p.cfg.Domains {
		d.domain(domain)
	}
	if d.bad == before {
		d.ok("gateway: its mailboxes, keys and sockets are there")
	}
}

// domain names what is wrong with one of MAIL_DOMAIN.
func (d *doctor) domain(domain string) {
	if domain == address.Default {
		d.say("MAIL_DOMAIN is %s, which no other domain can write to: set it to a domain of yours", domain)
		return
	}
	_, _, err := gateway.LoadKey(d.p.cfg.Store, domain)
	switch {
	case len(d.p.cfg.Gateway.Allow) == 0:
	case errors.Is(err, fs.ErrNotExist):
		d.say("gateway: no key signs mail from %s: `mailtree gateway setup %s` makes one", domain, domain)
	case err != nil:
		d.say("gateway: mail from %s is not signed: %v", domain, err)
	}
}

// queue names what the server could not send for a day.
func (d *doctor) queue(ctx context.Context, c *cli.Client) {
	var q mcpserver.Queued
	if err := c.Ask(ctx, "queue", mcpserver.QueueAsk{}, &q); err != nil { // it sends nothing, or cannot tell
		return
	}
	old := q.Items[:0]
	for _, i := range q.Items {
		if time.Since(i.Queued) > 24*time.Hour {
			old = append(old, i)
		}
	}
	listed := d.listed(len(old))
	for _, i := range old[:listed] {
		d.say("mail to %s waits since %s (%s): %s. `mailtree gateway check %s` says more, `mailtree gateway queue --retry %s` tries it now",
			i.To, i.Queued.Local().Format("2006-01-02 15:04"), string(i.State), i.Reply, i.To, i.ID)
	}
	d.sayMore(len(old) - listed)
}
