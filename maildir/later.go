package maildir

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Deferred is a thread that an agent has hidden for a while.
type Deferred struct {
	Thread  string       `json:"thread_id"`
	ID      string       `json:"message_id"` // the thread's newest message in the agent's inbox, which gets the .later mark
	Subject string       `json:"subject"`
	Until   format.Stamp `json:"until"`
}

// MaxLater is the longest time for which Later hides a thread.
const MaxLater = 30 * 24 * time.Hour

// laterMost is the number of a thread's newest messages that Later examines to find one in the agent's inbox.
const laterMost = 50

// Later hides a thread from Waits for a while. The thread appears again when that time is over, or when a newer message
// arrives in the thread. Later marks nothing as read. The argument thread may also be the id of a message in the
// thread. Later returns ErrInvalid if the duration is not positive or exceeds MaxLater, and ErrNotFound if none of the
// thread's newest messages is in the agent's inbox. It also returns any error from ThreadPage.
func (b *Box) Later(ctx context.Context, thread string, long time.Duration) (*Deferred, error) {
	if long <= 0 || long > MaxLater {
		return nil, &Error{
			What: refusal.Invalid("A thread cannot be hidden for {=other}: choose a positive time of at most {why}."),
			Why:  format.TimeLeft(MaxLater), Other: long.String(),
		}
	}
	page, err := b.p.ThreadPage(ctx, index.ThreadQuery{Thread: thread, Agent: b.agent, Limit: laterMost, Newest: true})
	if err != nil {
		return nil, err
	}
	var d *index.Delivery
	for i := range page.Messages {
		if own := page.Own[page.Messages[i].ID]; own != nil && own.Kind != index.KindSent && !own.Archived {
			d = own
		}
	}
	if d == nil {
		return nil, &Error{
			What:  refusal.NotFound("Thread {name} has no message in the inbox of {=other}."),
			Field: refusal.Thread,
			Name:  page.Thread,
			Other: b.agent,
		}
	}
	later := &Deferred{Thread: page.Thread, ID: d.ID, Subject: index.WithoutRe(page.Messages[0].Subject)}
	tx := &writer.Tx{
		Op:    writer.Op{Verb: "later", Agent: b.agent, ID: d.ID, Summary: b.agent + " " + d.ID},
		Facts: []string{core.MarkFact(b.agent)},
	}
	tx.Plan = func(g *writer.Group) error {
		d, err := b.p.mail.Delivery(g, b.agent, later.ID)
		if err != nil {
			return err
		}
		until := g.Now.Add(long).Truncate(time.Microsecond) // marks have microsecond precision
		later.Until = format.At(until)
		path := format.LaterMark(d.CopyPath)
		st, err := g.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			tx.Create(path, format.FormatMark(until))
			return nil
		case err != nil:
			return err
		case !st.Mode.IsRegular():
			return &Error{What: refusal.MarkBlocked, Other: path, Why: tree.NotRegular(st.Mode).Reason}
		}
		return g.Replace(tx, path, format.FormatMark(until))
	}
	if err := b.perform(ctx, tx); err != nil {
		return nil, err
	}
	return later, nil
}
