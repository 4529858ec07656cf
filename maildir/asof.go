package maildir

import (
	"context"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// InboxAsOf returns a page of an agent's inbox as it was at a point in the history, including the marks that existed
// then. Messages are sorted by path in descending order, which is newest first for files that a server created. The
// agent may have been removed since then. InboxAsOf uses only these fields of the query: Since, UrgentOnly, UnreadOnly,
// Archived, Bodies, Limit, Room and Before. Before must be a cursor from a page for the same point in the history.
// Invalid copies are not listed, but they are included in the counts, because excluding them would require parsing
// every copy in the inbox for each page. InboxAsOf returns ErrNotFound for an unknown agent and for a time outside the
// history, ErrInvalid for an ambiguous commit name, and any error from q.Room.Reserve.
func (b *Box) InboxAsOf(ctx context.Context, q index.InboxQuery, at history.Moment) (page *InboxPage, err error) {
	if format.CheckName(b.agent) != "" {
		return nil, b.p.mail.UnknownAgent(ctx, refusal.Agent, b.agent)
	}
	q.Agent, q.Limit = b.agent, pageSize(q.Limit)
	folder := strings.Join([]string{format.AgentsDir, b.agent, format.InboxDir}, "/")
	err = b.p.mail.History.AsOf(ctx, at, folder, func(_ history.Commit, files []history.OldFile) error {
		if len(files) == 0 {
			page = &InboxPage{}
			return b.p.mail.NeedAgent(ctx, refusal.Agent, b.agent)
		}
		old := oldCopies(files)
		return q.Room.Attempt(ctx, func() error {
			page, err = b.pageAsOf(ctx, q, old)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// oldCopy is an inbox copy from the history, with its marks. A mark's field is nil if the copy does not have the mark.
type oldCopy struct {
	history.OldFile
	id                  string
	read, ack, archived *history.OldFile
}

// oldCopies returns the inbox copies among files, one for each message, sorted by path in descending order. The files
// must be sorted by path in ascending order.
func oldCopies(files []history.OldFile) []oldCopy {
	marks := map[string]*history.OldFile{}
	for i := range files {
		marks[files[i].Path] = &files[i]
	}
	var all []oldCopy
	known := map[string]bool{}
	for _, f := range files {
		at := format.Locate(f.Path)
		if at.Kind != format.KindInbox || at.Bad != "" || known[at.ID] {
			continue
		}
		known[at.ID] = true
		all = append(all, oldCopy{
			OldFile:  f,
			id:       at.ID,
			read:     marks[format.ReadMark(f.Path)],
			ack:      marks[format.AckMark(f.Path)],
			archived: marks[format.ArchivedMark(f.Path)],
		})
	}
	slices.SortFunc(all, func(a, b oldCopy) int { return strings.Compare(b.Path, a.Path) })
	return all
}

// wasRead returns the mark that records that the copy was read (docs/reference/tree.md, "Marks"), or nil if there is
// none.
func (c *oldCopy) wasRead() *history.OldFile {
	switch {
	case c.read != nil:
		return c.read
	case c.ack != nil:
		return c.ack
	}
	return c.archived
}

// pageAsOf returns a page of an inbox from the history. A cursor is the number of copies that precede the page.
func (b *Box) pageAsOf(ctx context.Context, q index.InboxQuery, all []oldCopy) (*InboxPage, error) {
	page := &InboxPage{Counts: index.Counts{Total: len(all)}}
	for i := range all {
		if all[i].wasRead() == nil {
			page.Unread++
		}
		if all[i].archived != nil {
			page.Archived++
		}
	}
	for i := min(q.Before, int64(len(all))); i < int64(len(all)); i++ {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		c := &all[i]
		if c.archived != nil && !q.Archived || c.wasRead() != nil && q.UnreadOnly {
			continue
		}
		d, text, err := b.oldDelivery(q.Agent, c)
		if err != nil {
			return nil, err
		}
		urgent := d != nil && (d.Importance == format.High || d.Importance == format.Urgent)
		if d == nil || !d.Created.After(q.Since) || q.UrgentOnly && !urgent {
			continue
		}
		if len(page.Messages) == q.Limit {
			page.Next = i
			break
		}
		body := func(offset, n int64) (string, error) { return text[offset : offset+n], nil }
		if !q.Bodies {
			body = nil
		}
		ok, err := q.Room.Take(&d.MessageRow, body)
		if err != nil {
			return nil, err
		}
		if !ok {
			page.Next = i
			break
		}
		page.Messages = append(page.Messages, *d)
	}
	return page, nil
}

// oldDelivery reads an inbox copy from the history. It returns the message's text separately. If the copy is invalid,
// it returns nil without an error.
func (b *Box) oldDelivery(agent string, c *oldCopy) (d *index.Delivery, text string, err error) {
	data, err := c.Content()
	if err != nil {
		return nil, "", err
	}
	m, err := format.ParseMessage(c.id, data)
	if err != nil {
		return nil, "", nil
	}
	d = &index.Delivery{
		MessageRow: index.MessageRow{
			Project:   b.p.mail.Slug,
			Message:   *m,
			Path:      c.Path,
			BodyBytes: int64(len(m.Body)),
		},
		Agent:    agent,
		Kind:     m.KindFor(agent),
		CopyPath: c.Path,
		Marks:    index.Marks{Read: c.wasRead() != nil, Acked: c.ack != nil},
		Archived: c.archived != nil,
	}
	if d.Body, d.BCC = "", nil; d.Kind == "bcc" {
		d.BCC = []string{agent}
	}
	if d.ReadAt.Time, err = markTime(c.wasRead()); err == nil {
		d.AckedAt.Time, err = markTime(c.ack)
	}
	return d, m.Body, err
}

// markTime returns the time that a mark contains, or the zero time if there is no mark or it contains no time.
func markTime(f *history.OldFile) (time.Time, error) {
	if f == nil {
		return time.Time{}, nil
	}
	data, err := f.Content()
	if err != nil {
		return time.Time{}, err
	}
	at, _ := format.ParseMark(data)
	return at, nil
}
