package mcp

import (
	"context"

	"mailtree/maildir"
)

// WatchAsk is the body of POST /mailtree/watch. The answer contains the events in the project, or in every project if
// none is named. The first line contains only a Seq, the position from which events are reported.
type WatchAsk struct {
	After *int64 `json:"after,omitempty"` // begin after this Seq; nil: from now on
}

func (s *Server) watch(ctx context.Context, p *maildir.Project, ask *WatchAsk, say func(any) error) error {
	after, err := s.cfg.Store.LastChange(ctx)
	if ask.After != nil {
		after = *ask.After
	}
	if err == nil {
		err = say(maildir.Event{Seq: after})
	}
	if err != nil {
		return err
	}
	return s.cfg.Store.Watch(ctx, p, after, func(h *maildir.Event) error {
		if p != nil { // the client named the project
			h.Project = ""
		}
		return say(h)
	})
}
