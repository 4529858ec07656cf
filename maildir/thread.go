package maildir

import (
	"context"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// Message reads one message. Errors: ErrNotFound.
func (p *Project) Message(ctx context.Context, id string) (*MessageRow, error) {
	return p.MessageWithin(ctx, id, nil)
}

// MessageWithin reads one message with as much of its body as there is room for. Errors:
// ErrNotFound; ErrInvalid for the room's Offset; those of Room.Reserve.
func (p *Project) MessageWithin(ctx context.Context, id string, room *Room) (*MessageRow, error) {
	var m *MessageRow
	err := room.attempt(ctx, func() (err error) {
		m, err = p.store.index.Message(ctx, p.slug, id, WithBody, room)
		return err
	})
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, p.noMessage(refusal.Message, id)
	}
	return m, nil
}

// messageHead reads the message that a reply answers, without its body. Errors: ErrNotFound.
func (p *Project) messageHead(ctx context.Context, id string) (*MessageRow, error) {
	m, err := p.store.index.Message(ctx, p.slug, id, WithoutBody, nil)
	if err == nil && m == nil {
		err = p.noMessage(refusal.InReplyTo, id)
	}
	return m, err
}

func (p *Project) noMessage(field refusal.Field, id string) error {
	if err := p.needReadMessage(id); err != nil {
		return err
	}
	return &Error{
		What:  refusal.UnknownMessage,
		Field: field,
		Name:  id,
		Other: p.name(),
	}
}

// ThreadPage is one page of a thread.
type ThreadPage struct {
	Messages []MessageRow
	Next     int64 // cursor of the next page, 0 at the end
}

// threadPage is the size of a page, in messages.
const threadPage = 1000

// ThreadPage lists a thread oldest first: every message with that thread_id, and the message whose
// id it is. It ends with the room, and with Limit (default and most: 1,000). Errors: ErrNotFound;
// those of Room.Reserve. See docs/tools.md, "Reading".
func (p *Project) ThreadPage(ctx context.Context, q ThreadQuery) (*ThreadPage, error) {
	limit := threadPage
	if q.Limit > 0 {
		limit = min(q.Limit, threadPage)
	}
	q.Project, q.Limit = p.slug, limit+1
	page := &ThreadPage{}
	err := q.Room.attempt(ctx, func() (err error) {
		page.Messages, err = p.store.index.Thread(ctx, q)
		return err
	})
	if err == nil && len(page.Messages) == 0 && q.After == 0 {
		err = p.noThread(ctx, q.Thread)
	}
	if err != nil {
		return nil, err
	}
	if more := len(page.Messages) > limit; more || q.Room.more() {
		page.Messages = page.Messages[:min(limit, len(page.Messages))]
		page.Next = page.Messages[len(page.Messages)-1].Cursor
	}
	return page, nil
}

// Thread lists a whole thread, as ThreadPage does. Errors: ErrNotFound.
// See docs/tools.md, "Reading".
func (p *Project) Thread(ctx context.Context, id string, bodies bool) ([]MessageRow, error) {
	rows, err := p.store.index.Thread(ctx, ThreadQuery{Project: p.slug, Thread: id, Bodies: bodies})
	if err == nil && len(rows) == 0 {
		err = p.noThread(ctx, id)
	}
	return rows, err
}

func (p *Project) noThread(ctx context.Context, id string) error {
	if err := p.needRead(format.MessagesDir, format.AgentsDir); err != nil {
		return err
	}
	names, err := p.store.index.Names(ctx, p.slug, format.KindOther, format.Cut(id, 3), 100)
	if err != nil {
		names = nil // then none is known to be near
	}
	return &Error{
		What:  refusal.UnknownThread,
		Field: refusal.Thread,
		Name:  id,
		Other: p.name(),
		Near:  format.Near(id, names),
	}
}
