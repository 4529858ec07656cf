package mcp

import (
	"context"

	"mailtree/maildir"
)

// NewProject is the body of POST /mailtree/project: which project there is to be.
type NewProject struct {
	Key string `json:"key"` // an absolute path
}

// MadeProject is the project of that key, new or not.
type MadeProject struct {
	Slug     string `json:"slug"`
	HumanKey string `json:"human_key"`
}

// Made says what the project is called.
func Made(p *maildir.Project) MadeProject { return MadeProject{Slug: p.Slug(), HumanKey: p.HumanKey()} }

func (s *Server) newProject(ctx context.Context, ask *NewProject) (made MadeProject, err error) {
	p, err := s.cfg.Store.EnsureProject(ctx, ask.Key)
	if err != nil {
		return made, err
	}
	return Made(p), nil
}
