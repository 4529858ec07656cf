package maildir

import (
	"context"

	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// Message returns one message. It returns ErrNotFound if there is no such message.
func (p *Project) Message(ctx context.Context, id string) (*index.MessageRow, error) {
	return p.MessageWithin(ctx, id, nil)
}

// MessageWithin returns one message, with its receipts and as much of its body as fits into room. It returns
// ErrNotFound if there is no such message, ErrInvalid for an invalid room.Offset, and any error from Room.Reserve.
func (p *Project) MessageWithin(ctx context.Context, id string, room *index.Room) (*index.MessageRow, error) {
	id = p.mail.Store.Domains.IDNamed(id)
	head, err := p.mail.HeadNamed(ctx, refusal.Message, id)
	const forSender = false
	if err == nil {
		err = p.mail.AddReceipts(ctx, head, forSender)
	}
	if err != nil {
		return nil, err
	}
	var m index.MessageRow
	err = room.Attempt(ctx, func() error {
		m = *head
		_, err := room.Take(&m, func(offset, n int64) (string, error) { return p.mail.Store.Index.Body(ctx, p.mail.Slug, id, offset, n) })
		return err
	})
	return &m, err
}

// ThreadPage is one page of a thread.
type ThreadPage struct {
	Thread   string
	Messages []index.MessageRow
	Own      map[string]*index.Delivery // the copies of ThreadQuery.Agent, by message id, without bodies
	Next     int64                      // cursor of the next page; 0 on the last page
	Note     *Error                     // set if the query identifies the thread by a message's id; not an error
}

// threadPage is the default and maximum size of a page, in messages.
const threadPage = 1000

// ThreadPage returns a page of a thread, oldest first. A thread consists of the message whose id is the thread's id,
// and all messages with that id as their thread_id. The page ends when the room is full, or at Limit (default and
// maximum: 1,000). It returns ErrNotFound if there is no such thread, and any error from Room.Reserve. See
// docs/reference/tools.md, "Reading".
func (p *Project) ThreadPage(ctx context.Context, q index.ThreadQuery) (*ThreadPage, error) {
	limit := threadPage
	if q.Limit > 0 {
		limit = min(q.Limit, threadPage)
	}
	thread, note, err := p.threadNamed(ctx, q.Thread)
	if err != nil {
		return nil, err
	}
	if q.Newest {
		heads, err := p.mail.Store.Index.Thread(ctx, index.ThreadQuery{Project: p.mail.Slug, Thread: thread})
		if err != nil {
			return nil, err
		}
		if n := len(heads) - limit; n > 0 {
			q.After = heads[n-1].Cursor
		}
	}
	q.Project, q.Thread, q.Limit = p.mail.Slug, thread, limit+1
	page := &ThreadPage{Thread: thread, Note: note}
	err = q.Room.Attempt(ctx, func() (err error) {
		page.Messages, err = p.mail.Store.Index.Thread(ctx, q)
		return err
	})
	if err == nil && len(page.Messages) == 0 && q.After == 0 {
		err = p.mail.NoThread(ctx, q.Thread)
	}
	if err != nil {
		return nil, err
	}
	if more := len(page.Messages) > limit; more || q.Room.More() {
		page.Messages = page.Messages[:min(limit, len(page.Messages))]
		page.Next = page.Messages[len(page.Messages)-1].Cursor
	}
	return page, p.addHolders(ctx, page, &q)
}

// addHolders adds what the query requests to a page: the receipts of the page's messages, without receipts of bcc
// recipients, and one agent's copies.
func (p *Project) addHolders(ctx context.Context, page *ThreadPage, q *index.ThreadQuery) error {
	ids := make([]string, len(page.Messages))
	rows := make([]*index.MessageRow, len(page.Messages))
	for i := range page.Messages {
		ids[i], rows[i] = page.Messages[i].ID, &page.Messages[i]
	}
	if q.Receipts {
		holders, err := p.mail.HoldersOf(ctx, nil, rows...)
		if err != nil {
			return err
		}
		const forSender = false
		for _, m := range rows {
			p.mail.PutReceipts(m, holders, forSender)
		}
	}
	if q.Agent == "" {
		return nil
	}
	own, err := p.mail.Store.Index.Deliveries(ctx, p.mail.Slug, q.Agent, ids)
	page.Own = make(map[string]*index.Delivery, len(own))
	for i := range own {
		page.Own[own[i].ID] = &own[i]
	}
	return err
}

// threadNamed returns the thread with the given id. The argument name may also be the id of a message in the thread,
// which may be shortened (see FullID). In that case, threadNamed also returns a note. If name is both a message's id
// and a thread's id, threadNamed returns the thread with that id.
func (p *Project) threadNamed(ctx context.Context, name string) (thread string, note *Error, err error) {
	name, err = p.mail.Store.FullID(ctx, p.mail.Slug, refusal.Thread, name)
	if err != nil {
		return "", nil, err
	}
	id := p.mail.Store.Domains.IDNamed(name)
	m, err := p.mail.Store.Index.Message(ctx, p.mail.Slug, id, index.WithoutBody, nil)
	if err != nil || m == nil || m.ThreadID == name {
		return name, nil, err
	}
	rows, err := p.mail.Store.Index.Thread(ctx, index.ThreadQuery{Project: p.mail.Slug, Thread: id, Limit: 2})
	if err != nil || m.ThreadID == "" || len(rows) > 1 {
		return id, nil, err
	}
	return m.ThreadID, &Error{
		What:  refusal.Note("{name} is a message in the thread {=other}, so the response contains that thread."),
		Field: refusal.Thread,
		Name:  id,
		Other: m.ThreadID,
	}, nil
}

// Thread returns a whole thread, sorted as in ThreadPage. It returns ErrNotFound if there is no such thread. See
// docs/reference/tools.md, "Reading".
func (p *Project) Thread(ctx context.Context, id string, bodies bool) ([]index.MessageRow, error) {
	rows, err := p.mail.Store.Index.Thread(ctx, index.ThreadQuery{Project: p.mail.Slug, Thread: id, Bodies: bodies})
	if err == nil && len(rows) == 0 {
		err = p.mail.NoThread(ctx, id)
	}
	return rows, err
}
