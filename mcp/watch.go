package mcp

import (
	"context"

	"mailtree/maildir"
)

// WatchAsk is the body of POST /mailtree/watch, which answers what happens in the project, without one
// in every project. The first line has only a Seq: the watching has begun there.
type WatchAsk struct {
	After *int64 `json:"after,omitempty"` // the Seq behind which to begin; nil: from now on
}

func (s *Server) watch(ctx context.Context, p *maildir.Project, ask *WatchAsk, say func(any) error) error {
	after, err := s.cfg.Store.LastChange(ctx)
	if ask.After != nil {
		after = *ask.After
	}
	if err == nil {
		err = say(maildir.Happening{Seq: after})
	}
	if err != nil {
		return err
	}
	return s.cfg.Store.Watch(ctx, p, after, func(h *maildir.Happening) error {
		if p != nil { // they know which
			h.Project = ""
		}
		return say(h)
	})
}
