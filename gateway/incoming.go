package gateway

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"mailtree/gateway/auth"
	"mailtree/gateway/in"
	"mailtree/gateway/message"
	"mailtree/gateway/spool"
	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// Incoming stores mail from other domains. It implements in.Directory and in.Deliverer. Both interfaces identify a
// mailbox by the name of its agent, because addresses are unique within a store.
type Incoming struct {
	Store *maildir.Store
	Spool *spool.Spool // required if the server listens
	Log   *slog.Logger
	// Bounce receives delivery status reports from the null sender. It may be nil.
	Bounce func(ctx context.Context, b *message.Bounce) error
}

// Server returns the server that receives mail according to the configuration, without starting it. socketGID is the
// group that owns the server's Unix sockets. If socketGID is 0, the sockets belong to the process's group.
func (i *Incoming) Server(c *Config, socketGID int) *in.Server {
	return in.New(in.Config{
		Listen:     c.Listen,
		Host:       i.Store.Domains()[0],
		Domains:    i.Store.Domains(),
		CatchAll:   c.CatchAll,
		Postmaster: c.Postmaster,
		TLS:        c.TLS,
		MTAUser:    c.MTAUser,
		SocketGID:  socketGID,
		Spool:      i.Spool,
		Directory:  i,
		Deliverer:  i,
		Checker:    &auth.Checker{Resolver: c.NameServer(), Trusted: c.Authserv},
		Now:        time.Now,
		Log:        i.Log,
	})
}

// Missing returns the configured mailboxes that do not exist in the store. It returns the same errors as
// maildir.Store.MailboxAt.
func (i *Incoming) Missing(ctx context.Context, c *Config) (names []string, err error) {
	for _, name := range []string{c.Postmaster, c.CatchAll} {
		_, _, err := i.Store.MailboxAt(ctx, name)
		switch {
		case name == "":
		case errors.Is(err, maildir.ErrNotFound):
			names = append(names, name)
		case err != nil:
			return nil, err
		}
	}
	return names, nil
}

// Lookup implements in.Directory. It finds the mailbox for an address.
func (i *Incoming) Lookup(ctx context.Context, local, _ string) (mailbox string, err error) {
	p, agent, err := i.Store.MailboxAt(ctx, local)
	switch {
	case errors.Is(err, maildir.ErrNotFound):
		return "", in.ErrUnknown
	case err == nil:
		err = p.Post.HasRoom(ctx, agent)
	}
	return agent, full(err)
}

// full returns in.ErrFull if err means that a mailbox is full. It returns any other error unchanged.
func full(err error) error {
	var refused *maildir.Error
	if errors.As(err, &refused) && refused.What == refusal.MailboxFull {
		return in.ErrFull
	}
	return err
}

// Deliver implements in.Deliverer. It stores the message for all recipients in the same project in one operation.
func (i *Incoming) Deliver(ctx context.Context, d *in.Delivery) []error {
	errs := make([]error, len(d.To))
	agents := map[*maildir.Project][]string{}
	places := map[*maildir.Project][]int{} // the indexes in d.To of each project's agents
	for n, to := range d.To {
		p, agent, err := i.Store.MailboxAt(ctx, to.Mailbox)
		if errs[n] = err; err == nil {
			agents[p], places[p] = append(agents[p], agent), append(places[p], n)
		}
	}
	for p, names := range agents {
		for k, err := range i.deliver(ctx, p, names, d) {
			errs[places[p][k]] = err
		}
	}
	return errs
}

// deliver stores a message for agents in one project. It returns one result per agent: nil if the message has been
// stored, otherwise the error.
func (i *Incoming) deliver(ctx context.Context, p *maildir.Project, agents []string, d *in.Delivery) []error {
	email, err := i.email(ctx, p, d)
	if err != nil {
		return slices.Repeat([]error{err}, len(agents))
	}
	email.Mailboxes = agents
	id, errs := p.Post.Receive(ctx, *email)
	taken := 0
	for k, err := range errs {
		if errs[k] = full(err); err != nil {
			continue
		}
		taken++
		i.Log.Info("incoming mail delivered", "project", p.Slug, "mailbox", agents[k], "id", id, "from", email.From, "auth", email.Auth,
			"reason", d.Auth.Reason, "problems", d.Message.Problems)
	}
	if b := d.Message.Bounce; b != nil && d.Sender == "" && i.Bounce != nil && taken > 0 {
		if err := i.Bounce(ctx, b); err != nil {
			return slices.Repeat([]error{err}, len(agents))
		}
	}
	return errs
}

// email converts a message into mail for a project. It returns the same errors as maildir.Store.MailboxAt.
func (i *Incoming) email(ctx context.Context, p *maildir.Project, d *in.Delivery) (*maildir.Incoming, error) {
	m := d.Message
	email := &maildir.Incoming{
		From:         m.From,
		Subject:      m.Subject,
		Body:         m.Body,
		Plain:        !m.Markdown,
		MessageID:    m.MessageID,
		InReplyTo:    m.InReplyTo,
		References:   m.References,
		Automatic:    m.Automatic(),
		Date:         m.Date,
		Auth:         d.Auth.Auth(),
		Hash:         m.Hash,
		HTML:         m.HTML,
		BodyFromHTML: m.Markdown,
		Raw:          d.Raw,
		Problems:     m.Problems,
	}
	if m.Bounce != nil && email.InReplyTo == "" {
		email.InReplyTo = m.Bounce.MessageID
	}
	for _, a := range m.Attachments {
		email.Attachments = append(email.Attachments, attachment.Named(a.Name, a.Data))
	}
	_, domain, _ := strings.Cut(m.From, "@")
	forged := d.Auth.Domain == "" && i.Store.Domains().Has(domain) // the sender falsely claims to be in one of our domains
	if m.From == "" || forged || i.onThisMachine(m.From) {
		email.From = maildir.UnknownSender
	}
	var err error
	if email.To, err = i.parties(ctx, p, m.To); err == nil {
		email.CC, err = i.parties(ctx, p, m.Cc)
	}
	if err == nil {
		email.ReplyTo, err = i.parties(ctx, p, m.ReplyTo)
	}
	return email, err
}

// onThisMachine reports whether an address is local to this machine, such as root@localhost. A reply to such an address
// would not reach the sender. The address of an agent in another project also counts as local, because no email comes
// from such an address. Addresses in the store's domains are not local.
func (i *Incoming) onThisMachine(address string) bool {
	a, err := format.ParseAddress(address)
	return err == nil && (a.OnThisMachine() || i.Store.InAnotherProject(address)) && !i.Store.Domains().Has(a.Domain)
}

// parties replaces the addresses of the project's agents with the agents' names. It removes duplicates and unreachable
// addresses.
func (i *Incoming) parties(ctx context.Context, p *maildir.Project, addresses []string) (all []string, err error) {
	for _, address := range addresses {
		owner, agent, err := i.mailbox(ctx, address)
		if err != nil {
			return nil, err
		}
		if owner == nil && i.onThisMachine(address) {
			continue
		}
		if owner == p {
			address = agent
		}
		if !slices.Contains(all, address) {
			all = append(all, address)
		}
	}
	return all, nil
}

// mailbox returns the mailbox for an address, with or without a suffix after a plus sign. If the address is not in one
// of our domains, p is nil.
func (i *Incoming) mailbox(ctx context.Context, address string) (p *maildir.Project, agent string, err error) {
	local, domain, _ := strings.Cut(address, "@")
	if !i.Store.Domains().Has(domain) {
		return nil, "", nil
	}
	p, agent, err = i.Store.MailboxAt(ctx, local)
	if before, _, plus := strings.Cut(local, "+"); plus && errors.Is(err, maildir.ErrNotFound) {
		p, agent, err = i.Store.MailboxAt(ctx, before)
	}
	if errors.Is(err, maildir.ErrNotFound) {
		return nil, "", nil
	}
	return p, agent, err
}
