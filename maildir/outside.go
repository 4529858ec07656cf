package maildir

import (
	"context"
	"slices"

	"mailtree/maildir/index"
	"mailtree/maildir/outgoing"
	"mailtree/maildir/refusal"
)

// SendsOutside reports whether any mail may leave for other domains.
func (s *Store) SendsOutside() bool { return len(s.core.Outside.Allow) > 0 }

// refuseOutside refuses recipients at domains that no mail may go to. It names agents of similar names, unless
// a guest asks.
func (p *Project) refuseOutside(ctx context.Context, guest bool, s *strangers) error {
	e := &Error{
		What:  refusal.NotFound("Nothing was sent: this server sends no mail to {names} {arg}. {gateway} {near}"),
		Field: s.of,
		Name:  s.names[0],
		More:  s.names[1:],
	}
	if guest {
		return e
	}
	if err := p.mail.AddAgents(ctx, e, s.names); err != nil {
		return err
	}
	return e
}

// UnknownSender is the sender of mail from outside that does not have exactly one. Nothing is sent to it.
const UnknownSender = "unknown-sender@invalid"

var toUnknownSender = refusal.Invalid("Nothing was sent: {name} {arg} stands for the sender of mail that does not name one. Nobody gets " +
	"mail there.")

// refuseAutomatic refuses the answer of a program to mail from outside that is automatic, so that two programs do
// not answer each other. Spec: RFC 3834 2.
func (p *Project) refuseAutomatic(ctx context.Context, d *Draft) error {
	if d.InReplyTo == "" || d.origin.Person() {
		return nil
	}
	answered, err := p.mail.Store.Index.Message(ctx, p.mail.Slug, p.mail.Store.Domains.IDNamed(d.InReplyTo), index.WithoutBody, nil)
	if err == nil && answered == nil {
		answered, err = p.mail.Store.Index.FromElsewhere(ctx, p.mail.Slug, d.InReplyTo)
	}
	if err != nil || answered == nil || !answered.Automatic || !slices.Contains(slices.Concat(d.To, d.CC, d.BCC), answered.From) {
		return err
	}
	return &Error{
		What: refusal.Invalid("Nothing was sent: message {id} of {name} was written by a program or sent on by a list, and such mail gets no " +
			"answer from a program. A person can answer it, on a page or in a terminal."),
		Field: refusal.InReplyTo,
		Name:  answered.From,
		ID:    answered.ID,
	}
}

// fromFileOutside refuses a file in an outbox with recipients at other domains: a `git pull` can bring such a file.
var fromFileOutside = refusal.Invalid("{name} {arg} is at another domain, and a file in an outbox mails nobody there, because others can put " +
	"it there by Git: send it from the command line, the page or a tool.")

// leftFor returns the recipients at other domains who have a message already, or may have it, from its
// receipts. Nothing that is done here takes the message back from them.
func leftFor(m *index.MessageRow) (addresses []string) {
	for _, r := range m.Receipts {
		switch outgoing.State(r.Status) {
		case outgoing.Sending, outgoing.Sent, outgoing.Unknown:
			addresses = append(addresses, r.Agent)
		}
	}
	return addresses
}
