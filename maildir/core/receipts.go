package core

import (
	"cmp"
	"context"
	"slices"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/outgoing"
)

// DeliveredAt returns the time when this server delivered a message, which is the same for all recipients. It returns
// the zero Stamp if the message was delivered by another server or by hand.
func (c *Mail) DeliveredAt(m *index.MessageRow) (at format.Stamp) {
	if _, ok := c.Store.VerifiedHere(&m.Message); !ok || !c.IsNamed(m.Message.Project) {
		return at
	}
	return format.At(m.Created)
}

// AddReceipts adds the recipients' receipts to a message, in the order of the header. The names and receipts of bcc
// recipients are added only if forSender is true (Invariant I7).
func (c *Mail) AddReceipts(ctx context.Context, m *index.MessageRow, forSender bool) error {
	var hidden []string // bcc recipients that are not agents of this project
	if forSender {
		sent, err := c.Store.Index.Box(ctx, index.BoxQuery{Project: c.Slug, Agent: m.From, ID: m.ID, Sent: true, Limit: 1})
		if err != nil {
			return err
		}
		for i := range sent {
			hidden = slices.DeleteFunc(slices.Clone(sent[i].BCC), IsAgent)
		}
	}
	holders, err := c.HoldersOf(ctx, hidden, m)
	if err != nil {
		return err
	}
	c.PutReceipts(m, holders, forSender)
	for _, name := range hidden {
		m.BCC = append(m.BCC, name)
		m.Receipts = append(m.Receipts, c.receiptElsewhere(m, holders, name, "bcc"))
	}
	return nil
}

// Holders maps a project's slug and a message id to the receipts for that project's copies of the message.
type Holders map[string]map[string][]index.Receipt

// HoldersOf returns the receipts for all copies of the given messages, in this project and in the projects of the
// recipients in to, cc and more.
func (c *Mail) HoldersOf(ctx context.Context, more []string, all ...*index.MessageRow) (Holders, error) {
	ids := map[string][]string{} // by project
	add := func(slug, id string) {
		if !slices.Contains(ids[slug], id) {
			ids[slug] = append(ids[slug], id)
		}
	}
	for _, m := range all {
		add(c.Slug, m.ID)
		if m.Door == format.DoorGateway {
			continue
		}
		for _, name := range slices.Concat(m.To, m.CC, more) {
			if p := c.Store.PartyOf(name); p.Project != "" && c.Store.Projects.Mail(p.Project) != nil {
				add(p.Project, m.ID)
			}
		}
	}
	found := Holders{}
	for slug, ids := range ids {
		receipts, err := c.Store.Index.Receipts(ctx, slug, ids...)
		if err != nil {
			return nil, err
		}
		found[slug] = receipts
	}
	return found, nil
}

// PutReceipts is like AddReceipts, but takes the receipts from holders. It omits bcc recipients that are not agents
// of this project.
func (c *Mail) PutReceipts(m *index.MessageRow, holders Holders, forSender bool) {
	at := c.DeliveredAt(m)
	m.Receipts = []index.Receipt{}
	here := holders[c.Slug][m.ID]
	add := func(name, kind string) {
		if !IsAgent(name) && m.Door == format.DoorGateway { // whether the other recipients of an incoming email received it is unknown
			return
		}
		if !IsAgent(name) {
			m.Receipts = append(m.Receipts, c.receiptElsewhere(m, holders, name, kind))
			return
		}
		r := index.Receipt{Agent: name, Kind: kind}
		if i := slices.IndexFunc(here, func(h index.Receipt) bool { return h.Agent == name }); i >= 0 {
			r.Delivered, r.DeliveredAt, r.Marks, r.Unanswered = true, at, here[i].Marks, here[i].Unanswered
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
	for _, h := range here {
		if h.Kind == "bcc" {
			m.BCC = append(m.BCC, h.Agent)
			add(h.Agent, "bcc")
		}
	}
}

// receiptElsewhere returns the receipt of a recipient outside this project.
func (c *Mail) receiptElsewhere(m *index.MessageRow, holders Holders, name, kind string) index.Receipt {
	p := c.Store.PartyOf(name)
	if p.Email {
		return c.outsideReceipt(&m.Message, name, kind)
	}
	r := index.Receipt{Agent: name, Kind: kind}
	has := holders[p.Project][m.ID]
	if i := slices.IndexFunc(has, func(h index.Receipt) bool { return h.Agent == p.Name }); i >= 0 {
		r.Delivered, r.DeliveredAt, r.Marks, r.Unanswered = true, c.DeliveredAt(m), has[i].Marks, has[i].Unanswered
		if other := c.Store.Projects.Mail(p.Project); other != nil {
			r.AnnouncedAt = format.At(other.Seats.Announced(p.Name, m.ID))
		}
	} else if c.Store.Crossing(cmp.Or(c.Store.PartyOf(m.From).Project, c.Slug), m.ID, p.Project) {
		r.Status = string(outgoing.Queued)
	}
	return r
}

// outsideReceipt returns the receipt of a recipient at another domain. A message that has been sent counts as
// delivered.
func (c *Mail) outsideReceipt(m *format.Message, name, kind string) index.Receipt {
	r := index.Receipt{Agent: name, Kind: kind}
	if i := c.ItemOf(m, name); i != nil {
		r.Delivered, r.Status, r.Reply = i.State == outgoing.Sent, string(i.State), i.Reply
	}
	return r
}

// ItemOf returns the item of the outgoing queue for a message and a recipient. It returns nil if there is no such
// item, or if this server did not send the message.
func (c *Mail) ItemOf(m *format.Message, to string) *outgoing.Item {
	if !c.Store.PartyOf(to).Email {
		return nil
	}
	if _, ok := c.Store.VerifiedHere(m); !ok || !c.IsNamed(m.Project) {
		return nil
	}
	i, err := c.Outgoing().Get(outgoing.ID(m.ID, to))
	if err != nil {
		c.Store.Log.Warn("cannot read a message's delivery status", "project", c.Slug, "id", m.ID, "error", err)
	}
	return i
}

// Outgoing returns the project's mail that is waiting to be sent to other domains.
func (c *Mail) Outgoing() *outgoing.Folder {
	return &outgoing.Folder{Tree: c.Tree, Project: c.Slug, Key: c.Store.Key.Seed(), Log: c.Store.Log}
}
