package maildir

import (
	"context"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// finishMost is the number of a thread's newest messages that Finish considers.
const finishMost = 50

// Finished is a message that the agent is done with.
type Finished struct {
	ID string
	As string // "acknowledged", "archived" or "read": what was done to the message
}

// Finish records that the agent is done with a thread, without writing an answer. It acknowledges messages that request
// an acknowledgement, archives questions that the agent has not answered, and marks the rest as read. Each message is a
// separate operation, and all of these operations together form one step. Finish returns any error from ThreadPage,
// Acknowledge, Archive or SetRead. Operations completed before an error are kept.
func (b *Box) Finish(ctx context.Context, thread string) (all []Finished, err error) {
	page, err := b.p.ThreadPage(ctx, index.ThreadQuery{Thread: thread, Agent: b.agent, Limit: finishMost, Newest: true})
	if err != nil {
		return nil, err
	}
	ctx = format.InStep(ctx, format.NewStep())
	wrote := -1 // the agent's last message
	for i := range page.Messages {
		if page.Messages[i].From == b.agent {
			wrote = i
		}
	}
	for i := range page.Messages {
		as, err := b.finish(ctx, page.Own[page.Messages[i].ID], i > wrote)
		if err != nil {
			return nil, err
		}
		if as != "" {
			all = append(all, Finished{page.Messages[i].ID, as})
		}
	}
	return all, nil
}

// finish is like Finish, but for one message in the agent's inbox; d may be nil. If unanswered is set, the agent has
// written nothing after the message. It returns "" if there was nothing to do.
func (b *Box) finish(ctx context.Context, d *index.Delivery, unanswered bool) (as string, err error) {
	switch {
	case d == nil || d.Archived || d.Kind == index.KindSent:
	case d.AckRequired && !d.Acked:
		_, err = b.Acknowledge(ctx, d.ID)
		as = "acknowledged"
	case unanswered && !d.Acked && d.Kind == "to" && d.Question:
		_, err = b.Archive(ctx, d.ID)
		as = "archived"
	case !d.Read:
		const read = true
		_, err = b.SetRead(ctx, d.ID, read)
		as = "read"
	}
	return as, err
}
