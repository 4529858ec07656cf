package mcp

import (
	"context"

	"mailtree/maildir"
)

// NewProject is the body of POST /mailtree/project. It describes the project to create.
type NewProject struct {
	Key string `json:"key"` // absolute path
}

// MadeProject is the response to POST /mailtree/project. It describes the new or existing project for the key.
type MadeProject struct {
	Slug     string `json:"slug"`
	HumanKey string `json:"human_key"`
	Created  bool   `json:"created,omitempty"` // this call created the project
	Note     string `json:"note,omitempty"`    // a note about anything that may surprise the user
}

func (s *Server) newProject(ctx context.Context, _ *maildir.Project, ask *NewProject) (made MadeProject, err error) {
	_, missing := s.cfg.Store.Project(ctx, ask.Key)
	p, err := s.cfg.Store.EnsureProject(ctx, ask.Key)
	if err != nil {
		return made, err
	}
	return MadeProject{Slug: p.Slug, HumanKey: p.HumanKey(), Created: missing != nil, Note: p.MakingNote(ask.Key)}, nil
}
