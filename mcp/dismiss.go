package mcp

import (
	"context"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// DismissAsk is the body of POST /mailtree/dismiss.
type DismissAsk struct {
	Person string `json:"person"` // the user
}

// dismiss hides the current diagnostics from the list of things that are waiting for the user.
func (s *Server) dismiss(ctx context.Context, p *maildir.Project, ask *DismissAsk) (*maildir.Dismissed, error) {
	return tool.Box(ctx, p, ask.Person).Dismiss(ctx)
}
