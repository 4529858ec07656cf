package maildir

import (
	"context"
	"errors"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// SetRead marks a delivery as read or unread. If the delivery is already marked as read, its mark keeps the original
// time. Marking a delivery as unread also unarchives it. SetRead returns the updated delivery. It returns ErrNotFound
// if the agent does not exist or the message is not in its inbox, and ErrConflict if the delivery is acknowledged and
// read is false. See docs/reference/tools.md, "Reading".
func (b *Box) SetRead(ctx context.Context, id string, read bool) (*index.Delivery, error) {
	id = b.p.mail.Store.Domains.IDNamed(id)
	var err error
	if read {
		err = b.mark(ctx, core.Marking{Verb: "read", IDs: []string{id}})
	} else {
		err = b.unread(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	return b.Delivery(ctx, id)
}

func (b *Box) unread(ctx context.Context, id string) error {
	tx := &writer.Tx{
		Op:    writer.Op{Verb: "unread", Agent: b.agent, ID: id, Summary: b.agent + " " + id},
		Facts: []string{core.MarkFact(b.agent)},
	}
	tx.Plan = func(g *writer.Group) error {
		d, err := b.p.mail.Delivery(g, b.agent, id)
		if err != nil {
			return err
		}
		if d.Acked {
			if err := g.Present(format.AckMark(d.CopyPath)); err != nil {
				return err
			}
			return &Error{What: refusal.Conflict("Message {name} {arg} has been acknowledged, so it cannot be " +
				"marked as unread."), Field: refusal.Message, Name: id}
		}
		if d.Read {
			return g.Remove(tx, format.ReadMark(d.CopyPath), format.ArchivedMark(d.CopyPath))
		}
		// If there is a conflict, the file at the mark's path is not a mark, so there is nothing to remove.
		if err := b.p.mail.FreeFor(g, format.ReadMark(d.CopyPath)); !errors.Is(err, ErrConflict) {
			return err
		}
		return nil
	}
	return b.perform(ctx, tx)
}

// Acknowledge marks a delivery as acknowledged and read. Existing marks keep their original times. Acknowledge
// returns the updated delivery. It returns ErrNotFound if the agent does not exist or the message is not in its
// inbox. See docs/reference/tools.md, "Reading".
func (b *Box) Acknowledge(ctx context.Context, id string) (*index.Delivery, error) {
	id = b.p.mail.Store.Domains.IDNamed(id)
	if err := b.mark(ctx, core.Marking{Verb: "acknowledge", IDs: []string{id}}); err != nil {
		return nil, err
	}
	return b.Delivery(ctx, id)
}

// Archive marks a delivery as archived and read. Existing marks keep their original times. Inbox lists omit archived
// deliveries. Archive returns the updated delivery. It returns ErrNotFound if the agent does not exist or the message
// is not in its inbox. See docs/reference/tree.md, "Marks".
func (b *Box) Archive(ctx context.Context, id string) (*index.Delivery, error) {
	id = b.p.mail.Store.Domains.IDNamed(id)
	if err := b.mark(ctx, core.Marking{Verb: "archive", IDs: []string{id}}); err != nil {
		return nil, err
	}
	return b.Delivery(ctx, id)
}

// markPage marks the deliveries on a page as read and updates the page.
func (b *Box) markPage(ctx context.Context, page *InboxPage) error {
	var ids []string
	for _, d := range page.Messages {
		if !d.Read {
			ids = append(ids, d.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if err := b.mark(ctx, core.Marking{Verb: "read", IDs: ids, Page: true}); err != nil {
		return err
	}
	for i := range page.Messages {
		was := &page.Messages[i]
		d, err := b.p.mail.Store.Index.Delivery(ctx, b.p.mail.Slug, b.agent, was.ID, index.WithoutBody, nil)
		if err != nil {
			return err
		}
		if d != nil { // nil if the delivery has been removed since then
			was.Marks = d.Marks
		}
	}
	var err error
	page.Counts, err = b.p.mail.Store.Index.Counts(ctx, b.p.mail.Slug, b.agent)
	return err
}

// mark creates, in one operation, the marks that the deliveries do not have yet.
func (b *Box) mark(ctx context.Context, m core.Marking) error {
	tx := &writer.Tx{Op: writer.Op{Verb: m.Verb, Agent: b.agent}, Facts: []string{core.MarkFact(b.agent)}, IDs: m.IDs}
	if len(m.IDs) == 1 {
		tx.ID, tx.Summary = m.IDs[0], b.agent+" "+m.IDs[0]
	}
	tx.Plan = func(g *writer.Group) error { return b.p.mail.PlanMarking(g, tx, b.agent, m) }
	return b.perform(ctx, tx)
}
