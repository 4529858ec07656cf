package mcp

import (
	"context"
	"time"

	"mailtree/maildir"
)

// DecisionsAsk is the body of POST /mailtree/decisions.
type DecisionsAsk struct {
	Since time.Time `json:"since"`
}

// CatchUpAsk is the body of POST /mailtree/catchup.
type CatchUpAsk struct {
	Agent string    `json:"agent"`
	Since time.Time `json:"since,omitzero"` // zero means since the agent last looked
}

// decisions returns the decisions made in the project, or in all projects if p is nil.
func (s *Server) decisions(ctx context.Context, p *maildir.Project, ask *DecisionsAsk) (*maildir.Decisions, error) {
	return s.cfg.Store.Decided(ctx, p, ask.Since)
}

// catchUp returns what happened in the project, or in all projects if p is nil. It does not mark anything as read.
func (s *Server) catchUp(ctx context.Context, p *maildir.Project, ask *CatchUpAsk) (*maildir.CatchUp, error) {
	return s.cfg.Store.CatchUp(ctx, p, ask.Agent, ask.Since)
}
