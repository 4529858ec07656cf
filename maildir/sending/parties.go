package sending

import (
	"cmp"
	"context"
	"slices"

	"mailtree/maildir/core"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// NeedParties returns an error if the sender is unknown, if recipients are unknown, or if no mail may be sent to the
// domains of some recipients. The error lists all unknown recipients in this project, but only the first unknown
// recipient in another project.
func (s *Sender) NeedParties(ctx context.Context, d *Order) error {
	by := core.Caller{Root: true}
	if d.By != nil {
		by = *d.By
	}
	if is, err := s.mail.HasAgent(ctx, d.From); err != nil {
		return err
	} else if !is {
		return s.mail.UnknownTo(ctx, by, refusal.From, d.From)
	}
	var unknown, outside badRecipients
	for _, list := range []struct {
		of    refusal.Field
		names []string
	}{{refusal.To, d.To}, {refusal.CC, d.CC}, {refusal.BCC, d.BCC}} {
		for _, n := range list.names {
			ok, err := s.mail.HasAgent(ctx, n)
			switch {
			case err != nil:
				return err
			case ok:
			case d.Take != nil && s.mail.Store.IsElsewhere(n):
				return &refusal.Error{What: fromFileOutside, Field: list.of, Name: n}
			case d.Take != nil && s.mail.Store.PartyOf(n).Project != "":
				return &refusal.Error{What: fromFileAcross, Field: list.of, Name: n}
			case n == UnknownSender:
				return &refusal.Error{What: toUnknownSender, Field: list.of, Name: n}
			case s.mail.Store.PartyOf(n).Project != "":
				_, err := s.mail.NeedParty(ctx, list.of, n)
				if err != nil && s.isGuest(d) {
					unknown.add(n, list.of)
				} else if err != nil {
					return err
				}
			case !s.mail.Store.IsElsewhere(n):
				unknown.add(n, list.of)
			case !s.mail.Store.Outside.Allows(n):
				outside.add(n, list.of)
			}
		}
	}
	guest := s.isGuest(d)
	switch {
	case len(unknown.names) == 0 && len(outside.names) == 0:
		return nil
	case len(unknown.names) == 0:
		return s.refuseOutside(ctx, guest, &outside)
	case guest:
		e, err := s.mail.NoAgent(unknown.of, unknown.names)
		if err != nil {
			return err
		}
		return e
	}
	if err := s.mail.NoBroadcast(ctx, d.From, unknown.names); err != nil {
		return err
	}
	return s.mail.UnknownAgent(ctx, unknown.of, unknown.names...)
}

// isGuest reports whether the order comes from an OS user other than the store's user and root.
func (s *Sender) isGuest(d *Order) bool { return d.By != nil && s.mail.Store.IsForeignUser(*d.By) }

// badRecipients lists recipients that a message cannot have.
type badRecipients struct {
	names []string
	of    refusal.Field // the field that contains the bad recipients, or Recipients if several fields do
}

func (s *badRecipients) add(name string, of refusal.Field) {
	s.names = append(s.names, name)
	if s.of = cmp.Or(s.of, of); s.of != of {
		s.of = refusal.Recipients
	}
}

// refuseOutside returns an error for recipients at domains to which no mail may be sent. The error lists agents with
// similar names, unless the caller is a guest.
func (s *Sender) refuseOutside(ctx context.Context, guest bool, kept *badRecipients) error {
	e := &refusal.Error{
		What:  refusal.Invalid("Nothing was sent: this server does not send mail to {names} {arg}. {gateway} {near}"),
		Field: kept.of,
		Name:  kept.names[0],
		More:  kept.names[1:],
	}
	if guest {
		return e
	}
	if err := s.mail.AddAgents(ctx, e, kept.names); err != nil {
		return err
	}
	return e
}

// UnknownSender is the From address of mail from another domain whose real sender is unknown. The server does not
// send mail to this address. See docs/reference/tree.md, "Mail from other domains".
const UnknownSender = "unknown-sender@invalid"

var toUnknownSender = refusal.Invalid("Nothing was sent: {name} {arg} is a placeholder for an unknown sender. " +
	"Mail to this address reaches no one.")

// refuseAutomatic returns an error if a program replies to automatic mail from another domain. Otherwise, two programs
// could reply to each other forever. Spec: RFC 3834 2.
func (s *Sender) refuseAutomatic(ctx context.Context, d *Order) error {
	if d.InReplyTo == "" || d.Origin.Person() {
		return nil
	}
	answered, err := s.mail.Store.Index.Message(ctx, s.mail.Slug, s.mail.Store.Domains.IDNamed(d.InReplyTo), index.WithoutBody, nil)
	if err == nil && answered == nil {
		answered, err = s.mail.Store.Index.FromElsewhere(ctx, s.mail.Slug, d.InReplyTo)
	}
	if err != nil || answered == nil || !answered.Automatic || !slices.Contains(slices.Concat(d.To, d.CC, d.BCC), answered.From) {
		return err
	}
	return &refusal.Error{
		What: refusal.Invalid("Nothing was sent: message {id} from {name} was written by a program or forwarded by " +
			"a mailing list, and programs must not answer such mail. A user can answer it on the web page or in a " +
			"terminal."),
		Field: refusal.InReplyTo,
		Name:  answered.From,
		ID:    answered.ID,
	}
}

// fromFileOutside is the refusal for a file in an outbox with recipients at other domains. Such a file is refused
// because it may come from a `git pull`.
var fromFileOutside = refusal.Invalid("{name} {arg} is at another domain. A file in an outbox is never sent to " +
	"other domains, because others can add such a file through Git: send the message from the command line, the " +
	"web page or a tool.")

// fromFileAcross is the refusal for a file in an outbox with recipients in other projects. Such a file is refused
// because it may come from a `git pull`. Otherwise, anyone who may push to this project's mail could write to all
// projects on the machine.
var fromFileAcross = refusal.Invalid("{name} {arg} is in another project. A file in an outbox is never sent to other " +
	"projects, because others can add such a file through Git: send the message from the command line, the web page or a " +
	"tool.")
