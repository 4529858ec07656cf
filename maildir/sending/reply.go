package sending

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// Audience selects the recipients of a reply that does not name any.
type Audience string

const (
	Author         Audience = ""         // the message's author
	Everyone       Audience = "everyone" // the author and all other recipients, except the sender of the reply
	EveryoneInside Audience = "inside"   // like Author for a message from another domain, otherwise like Everyone
)

// MakeReply turns an order into a reply to the message with the given id, in that message's thread. Fields that the
// order leaves out are copied from that message. MakeReply returns ErrNotFound if the message does not exist, or if the
// message's sender is no longer an agent.
func (s *Sender) MakeReply(ctx context.Context, id string, d *Order) error {
	orig, err := s.mail.HeadNamed(ctx, refusal.InReplyTo, id)
	if err != nil {
		return err
	}
	d.Subject = cmp.Or(d.Subject, replySubject(orig.Subject))
	d.ThreadID, d.InReplyTo = cmp.Or(d.ThreadID, orig.ThreadID, orig.ID), orig.ID
	if d.Importance == "" && d.AckRequired && (orig.Importance == format.High || orig.Importance == format.Urgent) {
		d.Importance = orig.Importance
	}
	if len(d.To) > 0 {
		return nil
	}
	if err := s.checkAuthor(ctx, d, orig); err != nil {
		return err
	}
	to := s.Addressees(&orig.Message, d.From)
	d.To = to.Author
	switch everyone := d.Audience == Everyone || d.Audience == EveryoneInside && !to.Outside; {
	case len(to.Author) > 0 && everyone:
		d.To, d.CC = add(d.To, to.To), add(d.CC, to.CC)
	case len(to.Author) == 0:
		if d.To = to.To; len(d.CC) == 0 {
			d.CC = to.CC
		}
	}
	return nil
}

// checkAuthor returns an error if a reply cannot reach the author of a message from this project or another one.
func (s *Sender) checkAuthor(ctx context.Context, d *Order, m *index.MessageRow) error {
	switch {
	case s.mail.Store.PartyOf(m.From).Project != "":
		return s.needAuthor(ctx, d, m)
	case s.mail.Store.IsElsewhere(m.From) || m.From == d.From:
		return nil
	}
	ok, err := s.mail.HasAgent(ctx, m.From)
	if err == nil && !ok {
		err = s.mail.Sure()
	}
	if err != nil || ok {
		return err
	}
	return &refusal.Error{
		What: refusal.NotFound("Message {id} was written by {name}, who is not an agent of project {=other} " +
			"and has no inbox. " +
			"{answer somebody else}"),
		Name:  m.From,
		Other: s.mail.Name(),
		ID:    m.ID,
	}
}

// Addressees are the recipients that a reply to a message can have. No agent is listed twice, and the sender of the
// reply is listed only if there is no other recipient.
type Addressees struct {
	Author  []string // the recipients for Audience Author; nil if the sender of the reply wrote the message
	To, CC  []string // the other recipients, in the same lists as in the message
	Outside bool     // the message came from another domain, so EveryoneInside means Author
}

// Addressees returns the recipients that an agent's reply to a message can have. It does not check whether they exist.
func (s *Sender) Addressees(m *format.Message, agent string) Addressees {
	isMe := func(party string) bool { return s.mail.IsAgentAt(agent, party) }
	a := Addressees{Outside: s.isFromOutside(m)}
	switch {
	case isMe(m.From):
	case s.mail.Store.IsElsewhere(m.From):
		a.Author = s.answersTo(m, agent)
	default:
		a.Author = []string{m.From}
	}
	a.To, a.CC = others(m, func(party string) bool { return isMe(party) || slices.Contains(a.Author, party) })
	if len(a.Author)+len(a.To)+len(a.CC) == 0 {
		a.To = m.To
	}
	return a
}

// isFromOutside reports whether a message came from another domain.
func (s *Sender) isFromOutside(m *format.Message) bool {
	return m.Door == format.DoorGateway || s.mail.Store.IsElsewhere(m.From)
}

// others returns the recipients of a message for which isMe returns false. cc contains the recipients that only receive
// a copy. Neither list contains the author.
func others(m *format.Message, isMe func(party string) bool) (to, cc []string) {
	for _, name := range m.To {
		if name != m.From && !isMe(name) {
			to = add(to, []string{name})
		}
	}
	for _, name := range m.CC {
		if name != m.From && !isMe(name) && !slices.Contains(to, name) {
			cc = add(cc, []string{name})
		}
	}
	return to, cc
}

// add appends to list the names that it does not contain yet, and returns the result. It does not modify its
// arguments.
func add(list, names []string) []string {
	for _, name := range names {
		if !slices.Contains(list, name) {
			list = append(list[:len(list):len(list)], name)
		}
	}
	return list
}

// needAuthor returns an error if a reply to a message from another project cannot reach the author. This is the case if
// the message came by email and its sender only claims to be in another project, or if the project does not exist on
// this machine. The reply is never sent as email.
func (s *Sender) needAuthor(ctx context.Context, d *Order, m *index.MessageRow) error {
	if m.Door == format.DoorGateway {
		return &refusal.Error{
			What: refusal.Invalid("Message {id} came from another domain, and its sender {name} is not an address that mail can " +
				"be sent to. {answer somebody else}"),
			Field: refusal.InReplyTo,
			Name:  m.From,
			ID:    m.ID,
		}
	}
	_, err := s.mail.NeedParty(ctx, refusal.To, m.From)
	if errors.Is(err, refusal.ErrNotFound) && s.isGuest(d) {
		return s.mail.UnknownTo(ctx, *d.By, refusal.To, m.From)
	}
	return err
}

// answersTo returns the recipients of a reply to a message from another domain. These are the message's Reply-To
// addresses if the agent's mailbox trusts the sender, and otherwise the sender.
func (s *Sender) answersTo(m *format.Message, agent string) []string {
	auth, _ := s.mail.Store.VerifiedHere(m)
	if len(m.ReplyTo) > 0 && m.Door == format.DoorGateway && s.mail.TrustsSender(agent, m.From, auth) {
		return m.ReplyTo
	}
	return []string{m.From}
}

// replySubject prepends "Re: " to a subject, unless the subject already begins with "Re: ".
func replySubject(s string) string {
	s = plainSubject(s)
	if len(s) >= 3 && strings.EqualFold(s[:3], "re:") {
		return s
	}
	return "Re: " + format.Cut(s, format.MaxSubject-4)
}

// plainSubject returns a message's subject in a form that may be sent. A message that was not sent by a server may
// contain characters that core.CheckText rejects. Such characters are replaced with spaces.
func plainSubject(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if format.Misleading(r) {
			return ' '
		}
		return r
	}, s))
}
