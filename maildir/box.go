package maildir

import (
	"context"

	"mailtree/maildir/format"
	"mailtree/maildir/writer"
)

// Box is one agent's mail. Its methods are the agent's actions. The caller specifies the agent and the origin once,
// when creating the Box. A Box is safe for concurrent use.
type Box struct {
	p      *Project
	agent  string
	origin format.Origin
}

// Box returns the agent's mail for a caller with the given origin. Every method except Counts and UnreadSince checks
// whether the agent exists.
func (p *Project) Box(agent string, origin format.Origin) *Box { return &Box{p, agent, origin} }

// perform writes the agent's operation and records that the agent was active.
func (b *Box) perform(ctx context.Context, tx *writer.Tx) error {
	return b.p.mail.Perform(ctx, b.agent, tx)
}
