package mcp

import (
	"context"
	"errors"

	"mailtree/maildir"
)

// TurnReport is the body of POST /mailtree/turn. It describes a session's activity according to the client's files.
type TurnReport struct {
	maildir.SessionKey
	Dir  string               `json:"dir"`            // folder where the client was started
	Turn int                  `json:"turn,omitempty"` // turn described by the files (HookAnswer.Turn); 0 means the current turn
	Is   maildir.SessionState `json:"is"`
}

// turn records the activity of a session. It ignores a folder that does not belong to a project, because such a folder
// has no sessions.
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
