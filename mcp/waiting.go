package mcp

import (
	"context"

	"mailtree/maildir"
	"mailtree/maildir/format"
)

// WaitingAsk is the body of POST /mailtree/waiting and /mailtree/waiting-all.
type WaitingAsk struct {
	Agent string `json:"agent"`
	All   bool   `json:"all,omitempty"` // see maildir.WaitsQuery
}

// waiting returns everything that is waiting for an agent in the project. It does not mark anything as read.
func (s *Server) waiting(ctx context.Context, p *maildir.Project, ask *WaitingAsk) (*maildir.Waits, error) {
	return p.Box(ask.Agent, format.Origin{}).Waits(ctx, maildir.WaitsQuery{All: ask.All}) // the agent itself is asking
}

// waitingEverywhere is like waiting, for all projects.
func (s *Server) waitingEverywhere(ctx context.Context, _ *maildir.Project, ask *WaitingAsk) (*maildir.Waits, error) {
	return s.cfg.Store.WaitsEverywhere(ctx, ask.Agent, maildir.WaitsQuery{All: ask.All})
}
