package sending

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// PlanAutoAck plans the marks that a reply adds to the message that it answers, if the reply's sender received that
// message from another sender. The message is marked read. If it requests an acknowledgment, and the reply goes to its
// sender, it is also marked acknowledged. The marks contain the reply's time, so that PlanUndoAutoAck can recognize
// them. If the message is then acknowledged, acked is true. PlanAutoAck returns any error from Group.Behind.
func (s *Sender) PlanAutoAck(g *writer.Group, tx *writer.Tx, reply *format.Message) (acked bool, err error) {
	d, err := s.answered(g, reply)
	if err != nil || d == nil {
		return false, err
	}
	const skip = true // if something else is at a mark's path, the reply is still sent
	m := core.Marking{Verb: "read", Page: skip}
	if d.AckRequired && reaches(reply, d.From) {
		m.Verb = "acknowledge"
	}
	before := len(tx.Writes)
	if err := s.mail.PlanMarks(g, tx, m, d, reply.Created); err != nil {
		return false, err
	}
	if len(tx.Writes) > before {
		tx.Marks = d.ID
	}
	ack := format.AckMark(d.CopyPath)
	return d.Acked || slices.ContainsFunc(tx.Writes, func(w *tree.Write) bool { return w.Path == ack }), nil
}

// reaches reports whether a reply goes to the sender of the message that it answers. If that sender has an address
// outside the project, the result is always true, because replies may go to another address of that sender.
func reaches(reply *format.Message, sender string) bool {
	return strings.Contains(sender, "@") || slices.Contains(reply.Recipients(), sender)
}

// PlanUndoAutoAck plans the removal of the marks that PlanAutoAck created for a reply. If another reply by the same
// agent answers the same message, the marks get that reply's time instead.
func (s *Sender) PlanUndoAutoAck(g *writer.Group, tx *writer.Tx, reply *format.Message) error {
	d, err := s.answered(g, reply)
	if err != nil || d == nil {
		return err
	}
	thread, err := s.mail.Store.Index.Thread(g.Ctx, index.ThreadQuery{Project: s.mail.Slug, Thread: cmp.Or(d.ThreadID, d.ID)})
	if err != nil {
		return err
	}
	other := slices.IndexFunc(thread, func(m index.MessageRow) bool {
		return m.From == reply.From && m.InReplyTo == d.ID && m.ID != reply.ID
	})
	for _, path := range []string{format.ReadMark(d.CopyPath), format.AckMark(d.CopyPath)} {
		is, err := s.mail.ContentNow(path)
		// FaultFile means that the reply did not create what is at path.
		if err != nil && tree.FaultOf(err) != tree.FaultFile {
			return err
		}
		if !bytes.Equal(is, format.FormatMark(reply.Created)) {
			continue
		}
		if other >= 0 {
			err = g.Replace(tx, path, format.FormatMark(thread[other].Created))
		} else {
			err = g.Remove(tx, path)
		}
		if err != nil {
			return err
		}
		tx.Marks = d.ID
	}
	return nil
}

// answered returns the delivery of the message that a reply answers to the reply's sender. It returns nil if there is
// none, or if that message is the sender's own.
func (s *Sender) answered(g *writer.Group, reply *format.Message) (*index.Delivery, error) {
	if reply.InReplyTo == "" {
		return nil, nil
	}
	d, err := s.mail.Store.Index.Delivery(g.Ctx, s.mail.Slug, reply.From, reply.InReplyTo, index.WithoutBody, nil)
	if err != nil || d == nil || d.From == reply.From {
		return nil, err
	}
	return d, g.Present(d.CopyPath)
}
