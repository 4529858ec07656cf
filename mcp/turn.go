package mcp

import (
	"context"
	"errors"

	"mailtree/maildir"
)

// TurnReport is the body of POST /mailtree/turn: what the files of a client say of its session.
type TurnReport struct {
	maildir.SessionKey
	Dir  string               `json:"dir"`            // that the client was started in
	Turn int                  `json:"turn,omitempty"` // of which the files say it: HookAnswer.Turn; 0: the present one
	Is   maildir.SessionState `json:"is"`
}

// turn records what a session does. A folder without a project has no sessions.
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
