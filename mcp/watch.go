package mcp

import (
	"context"

	"mailtree/maildir"
)

// WatchAsk is the body of POST /mailtree/watch. The response streams the events in the project, or in all projects if
// the request does not name one. Its first line contains only a Seq: the position from which events are reported.
type WatchAsk struct {
	After *int64 `json:"after,omitempty"` // start after this Seq; nil means from now on
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
		if p != nil { // the client knows the project
			h.Project = ""
		}
		return say(h)
	})
}
