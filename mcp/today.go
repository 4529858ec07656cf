package mcp

import (
	"context"
	"time"

	"mailtree/maildir"
)

// today returns the events in the project since the given time.
func (s *Server) today(ctx context.Context, p *maildir.Project, since *time.Time) (*maildir.Day, error) {
	return p.Today(ctx, *since)
}
