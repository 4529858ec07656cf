package maildir

import (
	"cmp"
	"context"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// Finish marks messages in the agent's inbox as read, to record that the agent is done with them and will not answer
// them. Each mark is a separate operation, but Undo treats all of them as one step. Finish returns the ids of the
// messages that were unread. If the thread of one of the messages still asks the agent for an answer or an
// acknowledgment, according to Waits, Finish returns ErrConflict and changes nothing. It also returns any error from
// Waits, Delivery and SetRead. If an error occurs, Finish keeps the marks that it has already made.
func (b *Box) Finish(ctx context.Context, ids []string) (unread []string, err error) {
	asking, err := b.p.lister(b.agent).Asking(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		d, err := b.Delivery(ctx, id)
		if err != nil {
			return nil, err
		}
		if asking[cmp.Or(d.ThreadID, d.ID)] {
			return nil, &Error{
				What: refusal.Conflict("The thread {name} needs an answer or acknowledgement, so nothing was changed. Reply, " +
					"acknowledge the message, or hide the thread until later."),
				Name: d.Subject,
			}
		}
		if !d.Read && !d.Archived && d.Kind != index.KindSent {
			unread = append(unread, d.ID)
		}
	}
	ctx = format.InStep(ctx, format.NewStep())
	for _, id := range unread {
		const read = true
		if _, err := b.SetRead(ctx, id, read); err != nil {
			return nil, err
		}
	}
	return unread, nil
}
