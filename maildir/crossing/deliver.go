package crossing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"mailtree/maildir/attachment"
	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// verb is the verb of the operation that writes the copies in the other project's tree.
const verb = "deliver"

// messageFact returns the entry in writer.Tx.Facts for operations that write or remove the copies of a message.
func messageFact(id string) string { return "message " + id }

// deliver writes an item's copies into the tree of another project in one operation: the canonical file, the inbox
// copies and the attachments. It writes nothing if that project already has the message. A recipient that is no longer
// an agent gets no copy, and the sender gets a notice. deliver returns the writer's errors, or errors from reading the
// sender's attachments.
func (c *Carrier) deliver(ctx context.Context, from, to *core.Mail, i *Item) error {
	m, err := format.ParseMessage(i.Message, []byte(i.File))
	if err != nil {
		return fmt.Errorf("cannot read message %s for project %s: %w", i.Message, i.To, err)
	}
	m.Project, m.BCC = to.Name(), i.BCC
	files, err := attachments(from, to, m)
	if err != nil {
		return err
	}
	var gone []string
	tx := &writer.Tx{Op: writer.Op{Verb: verb}, Facts: []string{messageFact(m.ID)}, Sure: true}
	tx.Plan = func(g *writer.Group) error {
		gone = nil
		row, err := c.store.Index.Message(g.Ctx, to.Slug, m.ID, index.WithoutBody, nil)
		if err != nil || row != nil {
			return err
		}
		takers, left, err := takersOf(g.Ctx, to, m)
		if gone = left; err != nil || len(takers) == 0 {
			return err
		}
		for n := range files {
			if err := files[n].Plan(tx, g, to.Tree); err != nil {
				return err
			}
		}
		to.PlanDelivered(tx, m, takers)
		return c.planRestored(g, tx, to, m)
	}
	if err := to.Writer.Do(ctx, tx); err != nil {
		return err
	}
	if len(gone) > 0 {
		return c.tellLeft(ctx, from, i, m, gone)
	}
	return nil
}

// attachments reads the attachments of a message from the sender's tree. It omits attachments that are missing from the
// sender's tree, so that readers in both projects find the same attachments.
func attachments(from, to *core.Mail, m *format.Message) (files []attachment.File, err error) {
	for _, a := range m.Attachments {
		f, err := attachment.Copied(a, from.Tree)
		if err == nil && f != nil {
			err = f.Look(to.Tree)
		}
		if err != nil {
			return nil, refusal.Disk(err)
		}
		if f != nil {
			files = append(files, *f)
		}
	}
	return files, nil
}

// takersOf divides a message's recipients in the receiving project into takers, which are agents there, and gone, which
// are no longer agents.
func takersOf(ctx context.Context, to *core.Mail, m *format.Message) (takers, gone []string, err error) {
	for _, name := range m.Recipients() {
		if !core.IsAgent(name) {
			continue
		}
		is, err := to.HasAgent(ctx, name)
		switch {
		case err != nil:
			return nil, nil, err
		case is:
			takers = append(takers, name)
		default:
			gone = append(gone, name)
		}
	}
	return takers, gone, nil
}

// withdraw removes a message from the tree of another project because the sender's tree no longer has the message.
// Postmaster notifies the agents of that project that have read the message. These agents do not see each other's names
// (Invariant I7). withdraw does nothing if the project does not have the message, or if this server did not deliver the
// message there.
func (c *Carrier) withdraw(ctx context.Context, to *core.Mail, i *Item) error {
	m, err := format.ParseMessage(i.Message, []byte(i.File))
	if err != nil {
		return fmt.Errorf("cannot read message %s for project %s: %w", i.Message, i.To, err)
	}
	tx := &writer.Tx{
		Op:    writer.Op{Verb: history.VerbDelete, ID: m.ID, Summary: core.SummaryOf(m)},
		Facts: []string{messageFact(m.ID)},
		Alone: true,
		Sure:  true,
	}
	tx.Plan = func(g *writer.Group) error {
		row, err := c.store.Index.Message(g.Ctx, to.Slug, m.ID, index.WithoutBody, nil)
		if err != nil || row == nil || row.From != m.From {
			return err
		}
		holders, err := c.store.Index.Receipts(g.Ctx, to.Slug, m.ID)
		if err != nil {
			return err
		}
		files, err := c.store.Index.Files(g.Ctx, to.Slug, m.ID)
		if err == nil {
			err = g.Remove(tx, files...)
		}
		if err != nil {
			return err
		}
		return planWithdrawn(g, tx, to, row, holders[m.ID])
	}
	return to.Writer.Do(ctx, tx)
}

// planWithdrawn plans Postmaster's notice to the agents that have read a message that is being withdrawn.
func planWithdrawn(g *writer.Group, tx *writer.Tx, to *core.Mail, row *index.MessageRow, holders []index.Receipt) error {
	var readers []string
	for _, h := range holders {
		if h.Read {
			readers = append(readers, h.Agent)
		}
	}
	if len(readers) == 0 {
		return nil
	}
	op := tx.Op
	err := to.PlanNotice(g, tx, &format.Message{
		ThreadID:  cmp.Or(row.ThreadID, row.ID),
		InReplyTo: row.ID,
		BCC:       readers,
		Subject:   withdrawn + format.Cut(row.Subject, format.MaxSubject-20),
		Body: fmt.Sprintf("%s withdrew message %s after you had read it:\n\n    %s\n\nThe message no longer exists. "+
			"Do not rely on its content.\n", row.From, row.ID, format.Printable(row.Subject)),
	})
	tx.ID, tx.Summary = op.ID, op.Summary
	return err
}

// withdrawn is the beginning of the subject of a notice about a withdrawn message.
const withdrawn = "Withdrawn: "

// planRestored plans Postmaster's notice about a message that is delivered again after it was withdrawn. The notice
// goes to the agents that were notified about the withdrawal, if any.
func (c *Carrier) planRestored(g *writer.Group, tx *writer.Tx, to *core.Mail, m *format.Message) error {
	thread, err := c.store.Index.Thread(g.Ctx, index.ThreadQuery{Project: to.Slug, Thread: cmp.Or(m.ThreadID, m.ID)})
	if err != nil {
		return err
	}
	var notices []string
	for _, row := range thread {
		if row.From == format.Postmaster && row.InReplyTo == m.ID && strings.HasPrefix(row.Subject, withdrawn) {
			notices = append(notices, row.ID)
		}
	}
	if len(notices) == 0 {
		return nil
	}
	told, err := c.store.Index.Receipts(g.Ctx, to.Slug, notices...)
	if err != nil {
		return err
	}
	var readers []string
	for _, receipts := range told {
		for _, r := range receipts {
			if !slices.Contains(readers, r.Agent) {
				readers = append(readers, r.Agent)
			}
		}
	}
	slices.Sort(readers)
	op := tx.Op
	err = to.PlanNotice(g, tx, &format.Message{
		ThreadID:  cmp.Or(m.ThreadID, m.ID),
		InReplyTo: m.ID,
		BCC:       readers,
		Subject:   "Sent again: " + format.Cut(m.Subject, format.MaxSubject-20),
		Body: fmt.Sprintf("%s withdrew message %s after you had read it, and has now sent it again:\n\n    %s\n\nThe message is "+
			"valid again.\n", m.From, m.ID, format.Printable(m.Subject)),
	})
	tx.ID, tx.Summary = op.ID, op.Summary
	return err
}

// tellGone notifies the sender that a message cannot reach a project, because the project no longer exists.
func (c *Carrier) tellGone(ctx context.Context, from *core.Mail, i *Item) error {
	m, err := format.ParseMessage(i.Message, []byte(i.File))
	if err != nil {
		return fmt.Errorf("cannot read message %s for project %s: %w", i.Message, i.To, err)
	}
	m.BCC = i.BCC
	names := slices.DeleteFunc(m.Recipients(), func(name string) bool { return !core.IsAgent(name) })
	return c.notify(ctx, from, i, m, names, "This machine no longer has the project "+i.To+", so your message was not delivered there.")
}

// tellLeft notifies the sender that some recipients of a message are no longer agents of the other project.
func (c *Carrier) tellLeft(ctx context.Context, from *core.Mail, i *Item, m *format.Message, gone []string) error {
	return c.notify(ctx, from, i, m, gone, "The recipients are no longer agents of the project "+i.To+".")
}

// notify sends a Postmaster notice to the sender of a message that did not reach recipients in another project. Other
// agents can read the notice, so it names no bcc recipient (Invariant I7). notify sends at most one notice for each
// message and project.
func (c *Carrier) notify(ctx context.Context, from *core.Mail, i *Item, m *format.Message, names []string, why string) error {
	var lines strings.Builder
	for _, name := range names {
		if slices.Contains(i.BCC, name) {
			name = "a recipient in bcc"
		} else {
			name += "@" + i.To
		}
		fmt.Fprintf(&lines, "- %s\n", name)
	}
	sender := from.Store.PartyOf(m.From).Name
	return from.Notify(ctx, core.Notice{
		To:      sender,
		About:   "undelivered " + i.Message + " " + i.To,
		Subject: "Not delivered: " + format.Cut(m.Subject, 900),
		Body: fmt.Sprintf("Delivery report for your message %s (%s).\n\nThe message was not delivered to these recipients, and "+
			"the server will not try again:\n\n%s\n%s\n", i.Message, format.Printable(m.Subject), &lines, why),
		Thread:    cmp.Or(m.ThreadID, m.ID),
		Answers:   m.ID,
		Boundless: true,
	})
}
