package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mailtree/cmd/mailtree/cli"
	"mailtree/gateway"
	"mailtree/maildir"
	"mailtree/maildir/address"
	"mailtree/maildir/format"
	mcpserver "mailtree/mcp"
)

// gateway reports problems that keep mail from other domains from arriving, or that make other mail servers distrust
// our mail. It checks doctor's own settings, which may differ from the settings of a running server.
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
			d.say("%s: cannot check whether the mailbox %s exists: %v", setting, name, err)
		} else if !there {
			d.say("%s is set to the mailbox %s, which does not exist, so mail for it is deferred. To create it: "+
				"`mailtree mailbox create %s`", setting, name, name)
		}
	}
	for _, l := range g.Listen {
		if _, err := os.Stat(filepath.Dir(l.Addr)); l.Network == "unix" && err != nil {
			d.say("GATEWAY_LISTEN: cannot use the folder of the socket %s: %v", l.Addr, err)
		}
	}
	d.domain(d.p.cfg.Domains[0])
	d.smarthost(ctx)
	if d.bad == before {
		d.ok("gateway: no problems found")
	}
}

// smarthost reports problems with the smarthost, which relays outgoing mail.
func (d *doctor) smarthost(ctx context.Context) {
	s := d.p.cfg.Gateway.Smarthost
	if s == nil {
		return
	}
	if s.PasswordFile != "" {
		if _, err := os.ReadFile(s.PasswordFile); err != nil {
			d.say("cannot read GATEWAY_PASSWORD_FILE: %v", err)
		} else if fi, err := os.Stat(s.PasswordFile); err == nil && fi.Mode().Perm()&0o077 != 0 {
			d.say("other users can read GATEWAY_PASSWORD_FILE. To prevent this: `chmod 600 %s`", s.PasswordFile)
		}
	}
	dialer := net.Dialer{Timeout: 2 * time.Second, Resolver: d.p.cfg.Gateway.NameServer()}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(s.Host, s.Port))
	if err != nil {
		d.say("cannot reach GATEWAY_SMARTHOST: %v. Mail to other domains waits until the smarthost can be reached", err)
		return
	}
	conn.Close()
}

// domain reports problems with the first domain in MAIL_DOMAIN, from which mail is sent.
func (d *doctor) domain(domain string) {
	if domain == address.Default {
		d.say("MAIL_DOMAIN is %s, so other domains cannot send mail here: set it to your own domain", domain)
		return
	}
	_, _, err := gateway.LoadKey(d.p.cfg.Store, domain)
	switch {
	case len(d.p.cfg.Gateway.Allow) == 0:
	case errors.Is(err, fs.ErrNotExist):
		d.say("gateway: mail from %s is not signed, because the domain has no key. To create the key: "+
			"`mailtree gateway setup %s`", domain, domain)
	case err != nil:
		d.say("gateway: mail from %s is not signed: %v", domain, err)
	}
}

// unsent reports mail that is waiting in a queue although the server does not send mail to other domains.
func (d *doctor) unsent(v *view) {
	waiting := 0
	for slug, t := range v.trees {
		files, err := t.List(format.QueueDir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.say("cannot read the queue of %s: %v", slug, err)
		}
		for _, f := range files {
			if strings.HasSuffix(f.Name(), ".json") {
				waiting++
			}
		}
	}
	if waiting > 0 && !d.sends {
		d.say("gateway: the queue contains %s to other domains, but the server does not send any, because GATEWAY_ALLOW is not set: run "+
			"`mailtree serve` with the gateway's settings", count(waiting, "email"))
	}
}

// queue reports mail that the server has been unable to send for a day.
func (d *doctor) queue(ctx context.Context, c *cli.Client) {
	var q mcpserver.Queued
	if err := c.Ask(ctx, "queue", mcpserver.QueueAsk{}, &q); err != nil { // outgoing mail is off, or the server did not respond
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
		d.say("mail to %s has been waiting since %s (%s): %s. For details: `mailtree gateway check %s`. To send it now: "+
			"`mailtree gateway queue --retry %s`",
			i.To, i.Queued.Local().Format("2006-01-02 15:04"), string(i.State), i.Reply, i.To, i.ID)
	}
	d.sayMore(len(old) - listed)
}
