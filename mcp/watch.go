package mcp

import (
	"context"

	"mailtree/maildir"
)

// WatchAsk is the body of POST /mailtree/watch. The response is a stream of the events in the project, or in all
// projects if the request does not specify one. The first line of the stream contains only a Seq, and the stream
// reports the events after this Seq.
type WatchAsk struct {
	After *int64 `json:"after,omitempty"` // report the events after this Seq; nil means from now on
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
		if p != nil { // omit the project, because the client knows it
			h.Project = ""
		}
		return say(h)
	})
}

// LookAsk is the body of POST /mailtree/looking. It says that the thread is now on the user's screen.
type LookAsk struct {
	Thread string `json:"thread"` // the id of the thread
}

func (s *Server) looking(_ context.Context, p *maildir.Project, ask *LookAsk) (*struct{}, error) {
	if s.cfg.Looked != nil {
		s.cfg.Looked(p.Slug, ask.Thread)
	}
	return &struct{}{}, nil
}
