package mcp

import (
	"context"
	"slices"

	"mailtree/maildir"
)

// NewProject is the body of POST /mailtree/project. It describes the project to create or to find.
type NewProject struct {
	Key      string `json:"key"`                // absolute path
	Separate bool   `json:"separate,omitempty"` // create a project for this working tree alone
	Find     bool   `json:"find,omitempty"`     // find the project, even through other clones, but do not create one
}

// MadeProject is the response to POST /mailtree/project. It describes the new or existing project for the key.
type MadeProject struct {
	Slug     string `json:"slug"`
	HumanKey string `json:"human_key"`
	Created  bool   `json:"created,omitempty"` // whether this call created the project
	Note     string `json:"note,omitempty"`    // explains anything about the result that may surprise the user
	Fork     string `json:"fork,omitempty"`    // name of another project whose repository has the same first commit
	Moved    string `json:"moved,omitempty"`   // like Fork, but the other project's folder no longer exists
}

func (s *Server) newProject(ctx context.Context, _ *maildir.Project, ask *NewProject) (made MadeProject, err error) {
	before := s.cfg.Store.Projects()
	ensure := s.cfg.Store.EnsureProject
	switch {
	case ask.Separate:
		ensure = s.cfg.Store.EnsureSeparate
	case ask.Find:
		ensure = s.cfg.Store.FindProject
	}
	p, err := ensure(ctx, ask.Key)
	if err != nil {
		return made, err
	}
	made = MadeProject{Slug: p.Slug, HumanKey: p.HumanKey(), Created: !slices.Contains(before, p), Note: p.Code.NoteMade(ask.Key)}
	if made.Created {
		made.Fork, made.Moved = p.Code.Relatives()
	}
	return made, nil
}
