package maildir

import (
	"context"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// ReceiptOf returns the receipt for the delivery d.
func (p *Project) ReceiptOf(d *index.Delivery) index.Receipt {
	return index.Receipt{
		Agent:       d.Agent,
		Kind:        d.Kind,
		Delivered:   true,
		DeliveredAt: p.mail.DeliveredAt(&d.MessageRow),
		AnnouncedAt: format.At(p.mail.Seats.Announced(d.Agent, d.ID)),
		Marks:       d.Marks,
	}
}

// AwaitReply waits until a reply to the agent's message m is in the agent's inbox. It returns the newest reply, with
// as much of its body as fits into room, or nil if no reply arrives in time. AwaitReply does not mark the reply as
// read. A reply from another domain is accepted only if that domain vouches for the reply's sender, and the agent
// either trusts the sender or sent m to them. AwaitReply returns any error from w.Admit, room.Reserve or ctx.
func (b *Box) AwaitReply(ctx context.Context, m *Sent, w Waiting, room *index.Room) (*index.Delivery, error) {
	const markRead = false
	trusted, err := b.p.mail.Store.Trusted.Of(b.p.mail.Slug, b.agent)
	if err != nil {
		return nil, err
	}
	for _, name := range m.Recipients() {
		if b.p.mail.Store.PartyOf(name).Email {
			trusted = append(trusted, strings.ToLower(name))
		}
	}
	page, err := b.Inbox(ctx, index.InboxQuery{
		Since:   m.Created, // older messages cannot be replies to m
		ReplyTo: m.ID,
		Quiet:   true,
		Trusted: trusted,
		Bodies:  true,
		Limit:   1,
		Room:    room,
	}, markRead, w)
	if err != nil || len(page.Messages) == 0 {
		return nil, err
	}
	return &page.Messages[0], nil
}
