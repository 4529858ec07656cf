package mcp

import (
	"context"

	"mailtree/maildir"
	"mailtree/maildir/format"
)

// waiting returns everything that is waiting for an agent in the project. It does not mark anything.
func (s *Server) waiting(ctx context.Context, p *maildir.Project, agent *string) (*maildir.Waits, error) {
	const open = false // the agent itself is asking
	return p.Box(*agent, format.Origin{}).Waits(ctx, open)
}
