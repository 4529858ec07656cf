package mcp

import (
	"context"
	"maps"
	"slices"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// ProjectsAsk is the body of POST /mailtree/projects.
type ProjectsAsk struct {
	Person string `json:"person,omitempty"` // the user whose unread mail is counted
}

// Projects lists all projects in the store, sorted by slug.
type Projects struct {
	Projects []ProjectLine `json:"projects"`
	LeftOut  []LeftOut     `json:"left_out,omitempty"` // projects that could not be opened
}

// LeftOut is a project that could not be opened.
type LeftOut struct {
	Slug string `json:"slug"`
	Why  string `json:"why"` // the reason, as a sentence
}

// ProjectLine is one project.
type ProjectLine struct {
	Slug     string `json:"slug"`
	HumanKey string `json:"human_key,omitempty"`
	Created  string `json:"created,omitempty"`
	Unread   int    `json:"unread"` // the user's unread mail; 0 if the user is not an agent of the project
}

func (s *Server) listProjects(ctx context.Context, _ *maildir.Project, ask *ProjectsAsk) (out Projects, err error) {
	out.Projects = []ProjectLine{}
	for _, p := range s.cfg.Store.Projects() {
		line := ProjectLine{Slug: p.Slug, HumanKey: p.HumanKey(), Created: tool.Stamp(p.Created())}
		if ask.Person != "" {
			counts, err := tool.Box(ctx, p, ask.Person).Counts(ctx)
			if err != nil {
				return out, err
			}
			line.Unread = counts.Unread
		}
		out.Projects = append(out.Projects, line)
	}
	left := s.cfg.Store.LeftOut()
	for _, slug := range slices.Sorted(maps.Keys(left)) {
		out.LeftOut = append(out.LeftOut, LeftOut{slug, left[slug].Error()})
	}
	return out, nil
}
