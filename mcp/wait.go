package mcp

import (
	"context"
	"errors"

	"mailtree/maildir"
)

// WaitAnswer tells the client how to continue. If the server stopped before it had an answer, both fields are empty,
// and the client should ask the next server.
type WaitAnswer struct {
	Tell string `json:"tell,omitempty"` // text for the model; the client starts a turn with it
	Over bool   `json:"over,omitempty"` // there is nothing left for the client to wait for
}

// wait answers as soon as a client's session must be woken, or once there is no longer a session to wake.
func (s *Server) wait(ctx context.Context, _ *maildir.Project, v *maildir.SessionEvent, say func(any) error) error {
	a, err := awaitNews(ctx, v, s.cfg)
	if err != nil && ctx.Err() == nil {
		return err
	}
	return say(a)
}

func awaitNews(ctx context.Context, v *maildir.SessionEvent, cfg Config) (a WaitAnswer, err error) {
	p, err := cfg.Store.Project(ctx, v.Dir)
	if errors.Is(err, maildir.ErrNotFound) || err == nil && !v.Valid() {
		return WaitAnswer{Over: true}, nil
	}
	if err != nil {
		return a, err
	}
	news, over, err := p.Sessions.AwaitNews(ctx, v.SessionKey, cfg.Settle)
	return WaitAnswer{Tell: news.String(), Over: over}, err
}
