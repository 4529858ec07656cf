package mcp

import (
	"context"

	"mailtree/maildir"
	"mailtree/maildir/outgoing"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// Queue is the queue of mail to other domains.
type Queue interface {
	// List returns the pending items.
	List(ctx context.Context) ([]outgoing.Item, error)
	// Retry schedules an item to be sent now.
	Retry(ctx context.Context, id string) error
	// Drop removes an item from the queue without sending it.
	Drop(ctx context.Context, id string) error
}

// QueueAsk is the body of POST /mailtree/queue. At most one of the ids is set.
type QueueAsk struct {
	Retry string `json:"retry,omitempty"`
	Drop  string `json:"drop,omitempty"`
}

// Queued is the response to POST /mailtree/queue. It contains the queue after the requested change.
type Queued struct {
	Items []outgoing.Item `json:"items"`
}

func (s *Server) queue(ctx context.Context, _ *maildir.Project, ask *QueueAsk) (q Queued, err error) {
	if s.cfg.Queue == nil {
		return q, &maildir.Error{What: refusal.Unavailable("This server does not send mail to other domains.")}
	}
	switch {
	case ask.Retry != "":
		err = s.cfg.Queue.Retry(ctx, ask.Retry)
	case ask.Drop != "":
		err = s.cfg.Queue.Drop(ctx, ask.Drop)
	}
	if err != nil {
		return q, err
	}
	all, err := s.cfg.Queue.List(ctx)
	return Queued{tool.Listed(all)}, err
}

// CheckAsk is the body of POST /mailtree/check-address.
type CheckAsk struct {
	Address string `json:"address"`
}

func (s *Server) checkAddress(ctx context.Context, _ *maildir.Project, ask *CheckAsk) (any, error) {
	return s.cfg.CheckAddress(ctx, ask.Address)
}
