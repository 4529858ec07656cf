package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"mailtree/gateway/out"
	"mailtree/maildir"
	"mailtree/maildir/address"
	"mailtree/maildir/format"
)

// Finding is one statement about what would happen to mail sent to an address.
type Finding struct {
	OK   bool   `json:"ok"`
	Text string `json:"text"`
}

// checker collects findings about an address.
type checker struct {
	cfg   *Config
	store *maildir.Store
	root  string // folder of the store
	all   []Finding
}

func (c *checker) ok(form string, args ...any) {
	c.all = append(c.all, Finding{true, fmt.Sprintf(form, args...)})
}

func (c *checker) bad(form string, args ...any) {
	c.all = append(c.all, Finding{false, fmt.Sprintf(form, args...)})
}

// Check explains what would happen to a message sent to email, an address in one of the store's domains or elsewhere.
// It does not send anything. The parameter root is the store's folder. If email is not an address, Check returns
// ErrInvalid.
func (c *Config) Check(ctx context.Context, store *maildir.Store, root, email string) ([]Finding, error) {
	a, err := format.ParseAddress(email)
	if err == nil && a.IsAgent() {
		a, err = format.ParseAddress(store.Domains().Of(email))
	}
	if err != nil {
		return nil, err
	}
	k := &checker{cfg: c, store: store, root: root}
	switch {
	case store.Domains().Has(a.Domain):
		k.inside(ctx, a)
	case store.InAnotherProject(a.String()):
		k.bad("%s is the address of an agent in another project, not an email address. The domain of an email address contains a dot or "+
			"is listed in GATEWAY_ALLOW", a)
	case a.OnThisMachine():
		k.bad("%s is not an address at another domain: its domain refers to this machine or is an IP address", a)
	default:
		k.outside(ctx, a)
	}
	return k.all, nil
}

// inside collects findings about an address in one of the store's domains.
func (c *checker) inside(ctx context.Context, a format.Address) {
	c.ok("%s is one of this server's domains (MAIL_DOMAIN)", a.Domain)
	if len(c.cfg.Listen) == 0 {
		c.bad("the server does not receive mail from other domains: GATEWAY_LISTEN is not set")
	}
	for _, l := range c.cfg.Listen {
		c.ok("the server receives mail from other domains at %s", l.Addr)
	}
	incoming := &Incoming{Store: c.store, Log: slog.New(slog.DiscardHandler)}
	name, err := incoming.Server(c.cfg, 0).Mailbox(ctx, a.String())
	if err != nil {
		c.bad("mail to this address is refused: %v", err)
		c.unregistered(ctx, a.Local)
		return
	}
	p, agent, err := c.store.MailboxAt(ctx, name)
	if err != nil {
		c.bad("mail to this address is deferred because there is no mailbox %s. To create it: `mailtree mailbox create %s`", name, name)
		return
	}
	c.ok("mail to this address is delivered to the mailbox %s of project %s", agent, p.Slug)
	box, err := p.As(maildir.Caller{Root: true}, format.Origin{}).Box(ctx, agent)
	var trusted []string
	if err == nil {
		trusted, err = box.TrustedSenders()
	}
	switch {
	case err != nil:
		c.bad("cannot read the mailbox's trusted senders: %v", err)
	case len(trusted) == 0:
		c.ok("the mailbox does not trust any senders at other domains: their mail is stored, but does not wake agents or run " +
			"hooks")
	default:
		c.ok("the mailbox trusts mail from %s if it passes DMARC", strings.Join(trusted, ", "))
	}
	c.signs(c.store.Domains()[0])
}

// unregistered adds a finding for each agent that has the given name but no address.
func (c *checker) unregistered(ctx context.Context, name string) {
	for _, p := range c.store.Projects() {
		if _, err := p.As(maildir.Caller{Root: true}, format.Origin{}).Mailbox(ctx, name); err == nil {
			c.bad("the agent %s of project %s has no address. To give it one: `mailtree mailbox create %[1]s "+
				"--project %[2]s`", name, p.Slug)
		}
	}
}

// outside collects findings about an address in another domain.
func (c *checker) outside(ctx context.Context, a format.Address) {
	if !slices.Contains(c.cfg.Allow, "*") && !slices.Contains(c.cfg.Allow, a.Domain) {
		c.bad("mail to this address is refused: GATEWAY_ALLOW does not include %s", a.Domain)
	} else {
		c.ok("mail to %s is allowed: at most %d emails per hour from each mailbox", a.Domain, c.cfg.Rate)
	}
	if s := c.cfg.Smarthost; s != nil {
		c.ok("mail is relayed through %s, port %s (GATEWAY_SMARTHOST)", s.Host, s.Port)
	} else if hosts, err := (&out.MX{Resolver: c.cfg.NameServer()}).Servers(ctx, a.Domain); err != nil {
		c.bad("cannot find the domain's mail servers: %v", err)
	} else {
		c.ok("mail is sent to the domain's mail servers: %s", strings.Join(hosts, ", "))
	}
	own := c.store.Domains()[0]
	if own == address.Default {
		c.bad("replies will bounce because the sender's domain is %s: set MAIL_DOMAIN", own)
		return
	}
	c.signs(own)
}

// signs checks whether outgoing mail is signed. The parameter domain is the store's first domain, from which outgoing
// mail is sent.
func (c *checker) signs(domain string) {
	_, selector, err := LoadKey(c.root, domain)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.bad("mail from %s is not signed because the domain has no key. To create one: `mailtree gateway setup %s`", domain, domain)
	case err != nil:
		c.bad("mail from %s is not signed: %v", domain, err)
	default:
		c.ok("mail from %s is signed with the key %s", domain, selector)
	}
}
