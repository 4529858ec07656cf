package core

import (
	"context"
	"slices"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/outgoing"
)

// DeliveredAt returns the time when this server delivered a message, to all recipients at once. It returns zero if
// another server delivered the message, or if the message was delivered by hand.
func (c *Mail) DeliveredAt(m *index.MessageRow) (at format.Stamp) {
	if _, ok := c.Store.VerifiedHere(&m.Message); !ok || !c.IsNamed(m.Message.Project) {
		return at
	}
	return format.At(m.Created)
}

// AddReceipts adds the recipients' receipts to a message, in the order of the header. Only the sender gets the
// names and receipts of bcc recipients (Invariant I7).
func (c *Mail) AddReceipts(ctx context.Context, m *index.MessageRow, forSender bool) error {
	holders, err := c.Store.Index.Receipts(ctx, c.Slug, m.ID)
	if err != nil {
		return err
	}
	c.PutReceipts(m, holders[m.ID], forSender)
	if !forSender {
		return nil
	}
	sent, err := c.Store.Index.Box(ctx, index.BoxQuery{Project: c.Slug, Agent: m.From, ID: m.ID, Sent: true, Limit: 1})
	for i := range sent {
		for _, name := range sent[i].BCC {
			if !IsAgent(name) {
				m.BCC = append(m.BCC, name)
				m.Receipts = append(m.Receipts, c.outsideReceipt(&m.Message, name, "bcc"))
			}
		}
	}
	return err
}

// PutReceipts is like AddReceipts, but for known holders. It omits bcc recipients at other domains.
func (c *Mail) PutReceipts(m *index.MessageRow, holders []index.Receipt, forSender bool) {
	at := c.DeliveredAt(m)
	m.Receipts = []index.Receipt{}
	add := func(name, kind string) {
		if !IsAgent(name) && m.Door == format.DoorGateway { // from outside: the message's other recipients are unknown
			return
		}
		if !IsAgent(name) {
			m.Receipts = append(m.Receipts, c.outsideReceipt(&m.Message, name, kind))
			return
		}
		r := index.Receipt{Agent: name, Kind: kind}
		if i := slices.IndexFunc(holders, func(h index.Receipt) bool { return h.Agent == name }); i >= 0 {
			r.Delivered, r.DeliveredAt, r.Marks = true, at, holders[i].Marks
			r.AnnouncedAt = format.At(c.Seats.Announced(name, m.ID))
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

// outsideReceipt returns the receipt of a recipient at another domain. A message that has been sent is treated as
// delivered.
func (c *Mail) outsideReceipt(m *format.Message, name, kind string) index.Receipt {
	r := index.Receipt{Agent: name, Kind: kind}
	if i := c.ItemOf(m, name); i != nil {
		r.Delivered, r.Status, r.Reply = i.State == outgoing.Sent, string(i.State), i.Reply
	}
	return r
}

// ItemOf returns a message's outgoing item for a recipient. It returns nil if there is no such item, or if this server
// did not send the message.
func (c *Mail) ItemOf(m *format.Message, to string) *outgoing.Item {
	if IsAgent(to) {
		return nil
	}
	if _, ok := c.Store.VerifiedHere(m); !ok || !c.IsNamed(m.Project) {
		return nil
	}
	i, err := c.Outgoing().Get(outgoing.ID(m.ID, to))
	if err != nil {
		c.Store.Log.Warn("the delivery status of a message cannot be read", "project", c.Slug, "id", m.ID, "error", err)
	}
	return i
}

// Outgoing returns the project's mail that is waiting to be sent to other domains.
func (c *Mail) Outgoing() *outgoing.Folder {
	return &outgoing.Folder{Tree: c.Tree, Project: c.Slug, Key: c.Store.Key.Seed(), Log: c.Store.Log}
}
