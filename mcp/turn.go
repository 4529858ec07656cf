package mcp

import (
	"context"
	"errors"

	"mailtree/maildir"
)

// TurnReport is the body of POST /mailtree/turn. It contains what a client's files say about its session.
type TurnReport struct {
	maildir.SessionKey
	Dir  string               `json:"dir"`            // folder in which the client was started
	Turn int                  `json:"turn,omitempty"` // turn that the files describe: HookAnswer.Turn; 0: current
	Is   maildir.SessionState `json:"is"`
}

// turn records the activity of a session. A folder without a project has no sessions.
func (s *Server) turn(ctx context.Context, _ *maildir.Project, r *TurnReport) (struct{}, error) {
	p, err := s.cfg.Store.Project(ctx, r.Dir)
	switch {
	case errors.Is(err, maildir.ErrNotFound):
		return struct{}{}, nil
	case err == nil:
		p.Sessions.SetState(r.SessionKey, r.Turn, r.Is)
	}
	return struct{}{}, err
}
