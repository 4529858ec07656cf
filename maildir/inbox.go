package maildir

import (
	"context"
	"slices"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// InboxPage is one page of an inbox.
type InboxPage struct {
	Messages []index.Delivery
	index.Counts
	Next int64  // cursor of the next page; 0 on the last page
	Note *Error // set if the query identifies a thread by a message's id; not an error
}

// Default and maximum page sizes of lists, in messages.
const (
	DefaultPage = 20
	MaxPage     = 200
)

// MaxWait is the longest wait for mail.
const MaxWait = time.Hour

// Waiting configures how long a call waits for mail, and what ends the wait early. The zero value means no wait.
type Waiting struct {
	For time.Duration // at most MaxWait
	// Admit is called once, when the call has found nothing and is about to wait. If Admit returns an error, the call
	// returns that error instead of waiting. If Admit is nil, every wait is allowed.
	Admit func() error
	Until <-chan struct{} // closing Until ends the wait; may be nil
}

// await calls look repeatedly until look finds something or the wait ends. Before it waits, await releases the memory
// that room has reserved. It returns any error from look or awaitBell.
func (b *Box) await(ctx context.Context, w Waiting, room *index.Room, look func() (found bool, err error)) error {
	timeout := time.NewTimer(min(w.For, MaxWait))
	defer timeout.Stop()
	for again := w.For > 0; ; {
		bell := b.p.mail.Store.Feed.Agent(b.p.mail.Slug, b.agent)
		found, err := look()
		if found || err != nil || !again {
			return err
		}
		room.GiveBack()
		if again, err = b.p.awaitBell(ctx, &w, bell, timeout.C); err != nil {
			return err
		}
	}
}

// awaitBell waits until bell or w.Until is closed, the timeout expires, or the project or ctx ends. If again is false,
// the caller should check one last time and then return. It returns any error from Admit or ctx, and ErrNotFound if the
// project's folder was removed.
func (p *Project) awaitBell(ctx context.Context, w *Waiting, bell <-chan struct{}, timeout <-chan time.Time) (again bool, err error) {
	if w.Admit != nil {
		if err := w.Admit(); err != nil {
			return false, err
		}
		w.Admit = nil
	}
	select {
	case <-bell:
		return true, nil
	case <-timeout:
	case <-w.Until:
	case <-p.mail.Gone():
		return false, p.mail.WasRemoved()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	return false, nil
}

func pageSize(n int) int {
	if n <= 0 {
		return DefaultPage
	}
	return min(n, MaxPage)
}

// Inbox returns a page of deliveries, newest first. If markRead is set, Inbox durably marks the deliveries on the page
// as read before it returns, and the page shows them as read. If w allows a wait and the page has no news, Inbox waits
// until mail arrives or the wait ends. A page has news if it has an unread message or, if q.Since is set, any delivery.
//
// If q.ID is set, Inbox returns only that message, with its body. If q.Thread is set, it returns a page of that thread,
// oldest first. If q.AwaitingAck is set, it returns deliveries that are waiting for an acknowledgment. In these three
// cases, Inbox does not wait.
//
// A page ends when q.Room is full; deliveries that do not fit are not marked. Inbox returns ErrNotFound if the agent,
// q.ID or q.Thread does not exist. It returns ErrConflict if a program acts as another machine's agent without q.Peek.
// It also returns any error from ctx, w.Admit or q.Room.Reserve.
func (b *Box) Inbox(ctx context.Context, q index.InboxQuery, markRead bool, w Waiting) (page *InboxPage, err error) {
	if err := b.p.mail.NeedAgent(ctx, refusal.Agent, b.agent); err != nil {
		return nil, err
	}
	if !q.Peek {
		if err := b.p.mail.CheckMachine(ctx, b.agent); err != nil {
			return nil, err
		}
		b.p.mail.NoteSeen(ctx, b.agent) // an agent that is waiting is also active
		defer b.p.mail.NoteSeen(ctx, b.agent)
	}
	q.Project, q.Agent, q.Limit, q.ID = b.p.mail.Slug, b.agent, pageSize(q.Limit), b.p.mail.Store.Domains.IDNamed(q.ID)
	err = b.await(ctx, w, q.Room, func() (bool, error) {
		page, err = b.page(ctx, q)
		return err == nil && (q.ID != "" || q.Thread != "" || q.AwaitingAck || b.news(page, q)), err
	})
	if err == nil && markRead {
		err = b.markPage(ctx, page)
	}
	if err != nil {
		return nil, err
	}
	return page, nil
}

// news reports whether the page contains mail that ends a wait: an unread message or, if the query sets Since or
// Before, any message. Mail from other domains that the agent does not trust does not end a wait, unless the query
// itself selects such mail.
func (b *Box) news(page *InboxPage, q index.InboxQuery) bool {
	counts := func(d index.Delivery) bool {
		return q.Quiet || d.Door != format.DoorGateway || b.p.mail.Trust(&d.Message, b.agent) == Trusted
	}
	if !q.Since.IsZero() || q.Before != 0 {
		return slices.ContainsFunc(page.Messages, counts)
	}
	unread := page.Unread
	for _, d := range page.Messages {
		if !d.Read && counts(d) {
			return true
		} else if !d.Read {
			unread--
		}
	}
	return unread > 0 && !q.UrgentOnly
}

func (b *Box) page(ctx context.Context, q index.InboxQuery) (*InboxPage, error) {
	switch {
	case q.ID != "":
		return b.pageOfOne(ctx, q)
	case q.Thread != "":
		return b.pageOfThread(ctx, q)
	case q.AwaitingAck:
		return b.pageAwaiting(ctx, q)
	}
	limit := q.Limit
	q.Limit++
	page := &InboxPage{}
	err := q.Room.Attempt(ctx, func() (err error) {
		page.Messages, page.Counts, err = b.p.mail.Store.Index.Inbox(ctx, q)
		return err
	})
	if err != nil {
		return nil, err
	}
	if n := min(limit, len(page.Messages)); n > 0 && (n < len(page.Messages) || q.Room.More()) {
		page.Messages = page.Messages[:n]
		page.Next = page.Messages[n-1].Cursor
	}
	return page, nil
}

// pageOfOne returns a page with only the requested message. If the agent sent the message, the page contains the
// receipts.
func (b *Box) pageOfOne(ctx context.Context, q index.InboxQuery) (*InboxPage, error) {
	d, err := b.oneOf(ctx, q.Agent, q.ID)
	if err != nil {
		return nil, err
	}
	page := &InboxPage{}
	err = q.Room.Attempt(ctx, func() error {
		page.Messages = []index.Delivery{*d}
		_, err := q.Room.Take(&page.Messages[0].MessageRow, func(offset, n int64) (string, error) {
			return b.p.mail.Store.Index.Body(ctx, b.p.mail.Slug, d.ID, offset, n)
		})
		return err
	})
	if err == nil {
		page.Counts, err = b.p.mail.Store.Index.Counts(ctx, b.p.mail.Slug, q.Agent)
	}
	return page, err
}

// oneOf reads a message that the agent has received or sent, without the body. The id may also be the sender's
// idempotency key, which the postal toolset shows as the message's id.
func (b *Box) oneOf(ctx context.Context, agent, id string) (*index.Delivery, error) {
	d, err := b.p.mail.Store.Index.Delivery(ctx, b.p.mail.Slug, agent, id, index.WithoutBody, nil)
	if err == nil && d == nil {
		keyed, kerr := b.p.mail.Store.Index.IDKeyed(ctx, b.p.mail.Slug, agent, id)
		if kerr != nil {
			return nil, kerr
		}
		if keyed != "" {
			id = keyed
			d, err = b.p.mail.Store.Index.Delivery(ctx, b.p.mail.Slug, agent, id, index.WithoutBody, nil)
		}
	}
	if err == nil && d == nil {
		d, err = b.sent(ctx, agent, id)
	}
	if err == nil && d.From == agent {
		const forSender = true
		err = b.p.mail.AddReceipts(ctx, &d.MessageRow, forSender)
	}
	return d, err
}

// pageOfThread returns a page of a thread, with the agent's marks.
func (b *Box) pageOfThread(ctx context.Context, q index.InboxQuery) (*InboxPage, error) {
	thread, err := b.p.ThreadPage(ctx, index.ThreadQuery{
		Thread: q.Thread,
		Agent:  q.Agent,
		Bodies: q.Bodies,
		Limit:  q.Limit,
		After:  q.Before,
		Room:   q.Room,
	})
	if err != nil {
		return nil, err
	}
	page := &InboxPage{Next: thread.Next, Note: thread.Note}
	for i := range thread.Messages {
		m := &thread.Messages[i]
		d := index.Delivery{
			Agent: q.Agent,
			Kind:  index.KindThread,
			Marks: index.Marks{Read: true},
		}
		switch own := thread.Own[m.ID]; {
		case own != nil:
			d, m.BCC = *own, own.BCC
		case m.From == q.Agent:
			d.Kind = index.KindSent
		}
		d.MessageRow = *m
		page.Messages = append(page.Messages, d)
	}
	page.Counts, err = b.p.mail.Store.Index.Counts(ctx, b.p.mail.Slug, q.Agent)
	return page, err
}

// pageAwaiting returns a page of messages that the agent, or a recipient of the agent's own messages, still has to
// acknowledge. The page includes receipts.
func (b *Box) pageAwaiting(ctx context.Context, q index.InboxQuery) (*InboxPage, error) {
	limit := q.Limit
	q.Limit++
	rows, err := b.p.mail.Store.Index.Awaiting(ctx, q)
	for i := range rows {
		if d := &rows[i]; err == nil && d.From == q.Agent {
			const forSender = true
			err = b.p.mail.AddReceipts(ctx, &d.MessageRow, forSender)
		}
	}
	if err != nil {
		return nil, err
	}
	page := &InboxPage{}
	err = q.Room.Attempt(ctx, func() error {
		page.Messages = page.Messages[:0]
		for _, d := range rows[:min(limit, len(rows))] {
			if ok, err := b.takeDelivery(ctx, q, &d); !ok {
				return err
			}
			page.Messages = append(page.Messages, d)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if n := len(page.Messages); n > 0 && n < len(rows) {
		page.Next = page.Messages[n-1].Cursor
	}
	page.Counts, err = b.p.mail.Store.Index.Counts(ctx, b.p.mail.Slug, q.Agent)
	return page, err
}

// takeDelivery reserves room on a page for a message, including the body if the query requests bodies.
func (b *Box) takeDelivery(ctx context.Context, q index.InboxQuery, d *index.Delivery) (ok bool, err error) {
	var body func(offset, n int64) (string, error)
	if q.Bodies {
		body = func(offset, n int64) (string, error) {
			return b.p.mail.Store.Index.Body(ctx, b.p.mail.Slug, d.ID, offset, n)
		}
	}
	return q.Room.Take(&d.MessageRow, body)
}

// sent reads a message that the agent sent, without the body. It returns ErrNotFound if there is no such message.
func (b *Box) sent(ctx context.Context, agent, id string) (*index.Delivery, error) {
	m, err := b.p.mail.Store.Index.Message(ctx, b.p.mail.Slug, id, index.WithoutBody, nil)
	if err == nil && (m == nil || m.From != agent) {
		err = b.p.mail.NoDelivery(ctx, agent, id)
	}
	if err != nil {
		return nil, err
	}
	return &index.Delivery{
		MessageRow: *m,
		Agent:      agent,
		Kind:       index.KindSent,
		Marks:      index.Marks{Read: true},
	}, nil
}

// Counts returns the counts of the agent's mail, or zero counts if no agent has that name.
func (b *Box) Counts(ctx context.Context) (index.Counts, error) {
	return b.p.mail.Store.Index.Counts(ctx, b.p.mail.Slug, b.agent)
}

// UnreadSince returns the creation time of the agent's oldest unread message, or the zero time if there is none.
func (b *Box) UnreadSince(ctx context.Context) (at time.Time, err error) {
	const one = 1
	oldest, err := b.p.mail.Store.Index.OldestUnread(ctx, b.p.mail.Slug, b.agent, one)
	if len(oldest) > 0 {
		at = oldest[0].Created
	}
	return at, err
}

// Delivery returns the agent's copy of a message, without the body. It returns ErrNotFound if there is no such copy.
func (b *Box) Delivery(ctx context.Context, id string) (*index.Delivery, error) {
	d, err := b.p.mail.Store.Index.Delivery(ctx, b.p.mail.Slug, b.agent, id, index.WithoutBody, nil)
	if err == nil && d == nil {
		err = b.p.mail.NoDelivery(ctx, b.agent, id)
	}
	return d, err
}
