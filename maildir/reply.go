package maildir

import (
	"cmp"
	"context"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// Reply sends a reply to the message id, in its thread. Fields that the draft leaves out come from that
// message: recipients, subject, and the importance of a high or urgent message if the reply asks for
// acknowledgement. It returns the errors of Send, and ErrNotFound for the original. See docs/tools.md,
// "Sending".
func (b *Box) Reply(ctx context.Context, id string, d Draft) (*Sent, error) {
	d.from, d.origin = b.agent, b.origin
	if err := b.p.makeReply(ctx, id, &d); err != nil {
		return nil, err
	}
	return b.p.send(ctx, "reply", d)
}

// makeReply turns the draft into a reply: fields that it leaves out come from the original.
func (p *Project) makeReply(ctx context.Context, id string, d *Draft) error {
	orig, err := p.mail.HeadNamed(ctx, refusal.InReplyTo, id)
	if err != nil {
		return err
	}
	d.Subject = cmp.Or(d.Subject, replySubject(orig.Subject))
	d.ThreadID, d.InReplyTo = cmp.Or(d.ThreadID, orig.ThreadID, orig.ID), orig.ID
	if d.Importance == "" && d.AckRequired && (orig.Importance == format.High || orig.Importance == format.Urgent) {
		d.Importance = orig.Importance
	}
	if len(d.To) == 0 {
		if p.mail.Store.IsElsewhere(orig.From) {
			d.To = p.answersTo(orig, d.from)
		} else if orig.From != d.from {
			ok, err := p.mail.HasAgent(ctx, orig.From)
			if err == nil && !ok {
				err = p.mail.Sure()
			}
			if err != nil {
				return err
			}
			if !ok {
				return &Error{
					What: refusal.NotFound("Message {id} was written by {name}, who is not an agent of project {=other} and has no inbox. " +
						"{answer somebody else}"),
					Name:  orig.From,
					Other: p.mail.Name(),
					ID:    orig.ID,
				}
			}
			d.To = []string{orig.From}
		} else {
			d.To = orig.To
			if len(d.CC) == 0 {
				d.CC = orig.CC
			}
		}
	}
	return nil
}

// answersTo returns who gets an agent's answer to a message from elsewhere: the addresses that it names for
// answers, where the agent's mailbox trusts its sender, else the sender.
func (p *Project) answersTo(m *index.MessageRow, agent string) []string {
	auth, _ := p.mail.Store.VerifiedHere(&m.Message)
	if len(m.ReplyTo) > 0 && m.Door == format.DoorGateway && p.mail.TrustsSender(agent, m.From, auth) {
		return m.ReplyTo
	}
	return []string{m.From}
}

// replySubject puts "Re: " before a subject, unless it is there. Characters that checkText refuses, in a
// message that no server has sent, become blanks.
func replySubject(s string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if format.Misleading(r) {
			return ' '
		}
		return r
	}, s))
	if len(s) >= 3 && strings.EqualFold(s[:3], "re:") {
		return s
	}
	return "Re: " + format.Cut(s, format.MaxSubject-4)
}
