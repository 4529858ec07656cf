package maildir

import "context"

// Prepare returns the draft with the recipients and the subject that Send, or Reply to the message id if id
// is not "", would give it. It sends nothing. It returns ErrNotFound for an unknown message, and the errors
// of Send for its sender and recipients.
func (b *Box) Prepare(ctx context.Context, id string, d Draft) (*Draft, error) {
	d.from = b.agent
	if id != "" {
		if err := b.p.makeReply(ctx, id, &d); err != nil {
			return nil, err
		}
	}
	if err := b.p.resolveOwn(ctx, &d); err != nil {
		return nil, err
	}
	return &d, b.p.needParties(ctx, &d)
}
