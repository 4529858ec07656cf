package maildir

import "context"

// Hold starts a hold on another agent on behalf of this agent. See holds.Holds.Hold.
func (b *Box) Hold(ctx context.Context, r Holding) (*Held, error) {
	return b.p.Holds.Hold(ctx, b.agent, b.origin, r)
}

// Go ends a hold on another agent. See holds.Holds.Go.
func (b *Box) Go(ctx context.Context, agent string) (*Held, error) {
	return b.p.Holds.Go(ctx, b.agent, b.origin, agent)
}
