package maildir

import (
	"context"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// ReceiptOf returns the receipt of a delivery's holder.
func (p *Project) ReceiptOf(d *index.Delivery) index.Receipt {
	return index.Receipt{
		Agent:       d.Agent,
		Kind:        d.Kind,
		Delivered:   true,
		DeliveredAt: p.deliveredAt(&d.MessageRow),
		AnnouncedAt: format.At(p.seats.Announced(d.Agent, d.ID)),
		Marks:       d.Marks,
	}
}

// deliveredAt returns when this server delivered a message, to all recipients at once; zero if it was
// delivered by another server or by hand.
func (p *Project) deliveredAt(m *index.MessageRow) (at format.Stamp) {
	if _, ok := p.store.verifiedHere(&m.Message); !ok || m.Message.Project != p.name() {
		return at
	}
	return format.At(m.Created)
}

// addReceipts adds the receipts of a message's recipients, in the order of the header. Receipts of bcc
// recipients, and their names, are only for the sender (Invariant I7).
func (p *Project) addReceipts(ctx context.Context, m *index.MessageRow, forSender bool) error {
	holders, err := p.store.index.Receipts(ctx, p.Slug, m.ID)
	if err != nil {
		return err
	}
	p.putReceipts(m, holders[m.ID], forSender)
	if !forSender {
		return nil
	}
	sent, err := p.store.index.Box(ctx, index.BoxQuery{Project: p.Slug, Agent: m.From, ID: m.ID, Sent: true, Limit: 1})
	for i := range sent {
		for _, name := range sent[i].BCC {
			if !isAgent(name) {
				m.BCC = append(m.BCC, name)
				m.Receipts = append(m.Receipts, p.outsideReceipt(&m.Message, name, "bcc"))
			}
		}
	}
	return err
}

// putReceipts is addReceipts for a message whose holders are known.
func (p *Project) putReceipts(m *index.MessageRow, holders []index.Receipt, forSender bool) {
	at := p.deliveredAt(m)
	m.Receipts = []index.Receipt{}
	add := func(name, kind string) {
		if !isAgent(name) && m.Door == format.DoorGateway { // it came from outside: nothing is known of its others
			return
		}
		if !isAgent(name) {
			m.Receipts = append(m.Receipts, p.outsideReceipt(&m.Message, name, kind))
			return
		}
		r := index.Receipt{Agent: name, Kind: kind}
		if i := slices.IndexFunc(holders, func(h index.Receipt) bool { return h.Agent == name }); i >= 0 {
			r.Delivered, r.DeliveredAt, r.Marks = true, at, holders[i].Marks
			r.AnnouncedAt = format.At(p.seats.Announced(name, m.ID))
		}
		m.Receipts = append(m.Receipts, r)
	}
	for _, name := range m.To {
		add(name, "to")
	}
	for _, name := range m.CC {
		add(name, "cc")
	}
	if !forSender {
		return
	}
	m.BCC = nil
	for _, h := range holders {
		if h.Kind == "bcc" {
			m.BCC = append(m.BCC, h.Agent)
			add(h.Agent, "bcc")
		}
	}
}

// AwaitReply waits until a reply to the agent's message m is in the agent's inbox. It returns the newest
// reply, which stays unread, with as much of its body as fits into room; nil if none came. A reply from
// another domain counts if that domain vouches for its sender, and the agent trusts the sender or has asked
// them. It returns the errors of w.Admit, room.Reserve and ctx.
func (b *Box) AwaitReply(ctx context.Context, m *Sent, w Waiting, room *index.Room) (*index.Delivery, error) {
	const markRead = false
	trusted, err := b.p.store.trusted.of(b.p.Slug, b.agent)
	if err != nil {
		return nil, err
	}
	for _, name := range m.Recipients() {
		if !isAgent(name) {
			trusted = append(trusted, strings.ToLower(name))
		}
	}
	page, err := b.Inbox(ctx, index.InboxQuery{
		Since:   m.Created, // older messages cannot answer it
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
