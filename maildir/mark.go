package maildir

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// SetRead marks a delivery read or unread. An earlier read time stays, and an unread delivery is no longer
// archived. It returns the delivery as it then is. It returns ErrNotFound for the agent or if the message
// is not in its inbox, and ErrConflict for unread if the delivery is acknowledged. See docs/tools.md,
// "Reading".
func (b *Box) SetRead(ctx context.Context, id string, read bool) (*index.Delivery, error) {
	id = b.p.store.Domains().IDNamed(id)
	var err error
	if read {
		err = b.mark(ctx, marking{verb: "read", ids: []string{id}})
	} else {
		err = b.unread(ctx, id)
	}
	if err != nil {
		return nil, err
	}
	return b.Delivery(ctx, id)
}

func (b *Box) unread(ctx context.Context, id string) error {
	tx := &writer.Tx{Op: writer.Op{Verb: "unread", Agent: b.agent, ID: id, Summary: b.agent + " " + id}, Facts: []string{markFact(b.agent)}}
	tx.Plan = func(g *writer.Group) error {
		d, err := b.p.delivery(g, b.agent, id)
		if err != nil {
			return err
		}
		if d.Acked {
			if err := g.Present(format.AckMark(d.CopyPath)); err != nil {
				return err
			}
			return &Error{What: refusal.Conflict("Message {name} {arg} is acknowledged, so it stays read."), Field: refusal.Message, Name: id}
		}
		if d.Read {
			return g.Remove(tx, format.ReadMark(d.CopyPath), format.ArchivedMark(d.CopyPath))
		}
		if err := b.p.freeFor(g, format.ReadMark(d.CopyPath)); !errors.Is(err, ErrConflict) { // something else lies at the mark's path
			return err
		}
		return nil
	}
	return b.perform(ctx, tx)
}

// Acknowledge marks a delivery acknowledged and read. An earlier time stays. It returns the delivery as it
// then is. It returns ErrNotFound for the agent or if the message is not in its inbox. See docs/tools.md,
// "Reading".
func (b *Box) Acknowledge(ctx context.Context, id string) (*index.Delivery, error) {
	id = b.p.store.Domains().IDNamed(id)
	if err := b.mark(ctx, marking{verb: "acknowledge", ids: []string{id}}); err != nil {
		return nil, err
	}
	return b.Delivery(ctx, id)
}

// Archive marks a delivery archived and read. An earlier time stays. Lists of the inbox then leave it out.
// It returns the delivery as it then is. It returns ErrNotFound for the agent or if the message is not in
// its inbox. See docs/tree.md, "Marks".
func (b *Box) Archive(ctx context.Context, id string) (*index.Delivery, error) {
	id = b.p.store.Domains().IDNamed(id)
	if err := b.mark(ctx, marking{verb: "archive", ids: []string{id}}); err != nil {
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
	if err := b.mark(ctx, marking{verb: "read", ids: ids, page: true}); err != nil {
		return err
	}
	for i := range page.Messages {
		was := &page.Messages[i]
		d, err := b.p.store.index.Delivery(ctx, b.p.Slug, b.agent, was.ID, index.WithoutBody, nil)
		if err != nil {
			return err
		}
		if d != nil { // otherwise the delivery was removed meanwhile
			was.Marks = d.Marks
		}
	}
	var err error
	page.Counts, err = b.p.store.index.Counts(ctx, b.p.Slug, b.agent)
	return err
}

// marking names deliveries of one agent to mark.
type marking struct {
	verb string // "read"; "acknowledge" and "archive", which also mark as read
	ids  []string
	page bool // skip a delivery that is gone or cannot be marked
}

// mark creates the missing marks of deliveries in one operation.
func (b *Box) mark(ctx context.Context, m marking) error {
	tx := &writer.Tx{Op: writer.Op{Verb: m.verb, Agent: b.agent}, Facts: []string{markFact(b.agent)}, IDs: m.ids}
	if len(m.ids) == 1 {
		tx.ID, tx.Summary = m.ids[0], b.agent+" "+m.ids[0]
	}
	tx.Plan = func(g *writer.Group) error { return b.p.planMarking(g, tx, b.agent, m) }
	return b.perform(ctx, tx)
}

// planMarking plans the missing marks of an agent's deliveries.
func (p *Project) planMarking(g *writer.Group, tx *writer.Tx, agent string, m marking) error {
	for _, id := range m.ids {
		d, err := p.delivery(g, agent, id)
		if m.page && (errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalid)) { // it was removed meanwhile
			continue
		}
		if err == nil {
			err = p.planMarks(g, tx, m, d, g.Now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// planMarks plans the marks that a delivery lacks, with a time. It returns the errors of freeFor, and
// Group.Behind if a mark that the index knows is gone.
func (p *Project) planMarks(g *writer.Group, tx *writer.Tx, m marking, d *index.Delivery, at time.Time) error {
	type mark struct {
		path  string
		there bool
	}
	read := mark{format.ReadMark(d.CopyPath), d.Read}
	acked, archived := mark{format.AckMark(d.CopyPath), d.Acked}, mark{format.ArchivedMark(d.CopyPath), d.Archived}
	switch { // these count as read, with or without a .read
	case acked.there:
		read = acked
	case archived.there:
		read = archived
	}
	marks := []mark{read}
	switch m.verb {
	case "acknowledge":
		marks = append(marks, acked)
	case "archive":
		marks = append(marks, archived)
	}
	for _, mark := range marks {
		if mark.there {
			if err := g.Present(mark.path); err != nil {
				return err
			}
			continue
		}
		switch err := p.freeFor(g, mark.path); {
		case err == nil:
			tx.Create(mark.path, format.FormatMark(at))
		case !m.page || !errors.Is(err, ErrConflict):
			return err
		}
	}
	return nil
}

// freeFor returns nil if a file can be created at path. It returns Group.Behind if a file exists there that
// the index does not know yet, and ErrConflict if something is there that is not a file or not a valid
// mark.
func (p *Project) freeFor(g *writer.Group, path string) error {
	st, err := g.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && st.Mode.IsRegular():
		_, _, err := p.Tree.Read(path, format.MaxSmall)
		switch tree.FaultOf(err) {
		case tree.FaultFile:
			return &Error{What: refusal.MarkBlocked, Other: path, Why: tree.PlainFileError(err)}
		case tree.FaultMachine:
			return err
		}
		return g.Behind(path)
	case err == nil:
		return &Error{What: refusal.MarkBlocked, Other: path, Why: tree.NotRegular(st.Mode).Reason}
	}
	return err
}
