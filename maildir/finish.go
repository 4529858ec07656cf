package maildir

import (
	"context"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// Finish records that the agent is done with messages in its inbox, without writing an answer: it marks them as read.
// Each mark is a separate operation, and all of them together form one step. Finish returns the ids of the messages that
// were unread. If one of the messages still asks the agent for an answer or an acknowledgement, Finish returns
// ErrConflict and changes nothing. It also returns any error from Delivery and SetRead. Marks made before an error are
// kept.
func (b *Box) Finish(ctx context.Context, ids []string) (unread []string, err error) {
	for _, id := range ids {
		d, err := b.Delivery(ctx, id)
		if err != nil {
			return nil, err
		}
		asks, err := b.p.lister(b.agent).Asks(ctx, d)
		if err != nil {
			return nil, err
		}
		if asks {
			return nil, &Error{
				What: refusal.Conflict("Message {name} asks for an answer, so nothing was changed. Reply to it, acknowledge it " +
					"or archive it."),
				Field: refusal.Message,
				Name:  id,
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
