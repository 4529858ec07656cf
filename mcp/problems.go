package mcp

import (
	"context"
	"path/filepath"

	"mailtree/maildir"
	"mailtree/maildir/format"
)

// Problems are files that are not valid, by path.
type Problems struct {
	Problems []format.Problem `json:"problems"`
	More     bool             `json:"more"` // there are more than these
}

// mostProblems is how many POST /mailtree/problems lists.
const mostProblems = 1000

// problems lists those of the project, without one those of every project.
func (s *Server) problems(ctx context.Context, of *maildir.Project, _ *struct{}) (answer Problems, err error) {
	slug := ""
	if of != nil {
		slug = of.Slug
	}
	all, err := s.cfg.Store.Problems(ctx, slug, mostProblems+1)
	answer.More = len(all) > mostProblems
	answer.Problems = append([]format.Problem{}, all[:min(len(all), mostProblems)]...)
	trees := map[string]string{}
	for _, p := range s.cfg.Store.Projects() {
		trees[p.Slug] = p.Tree.Dir()
	}
	for i := range answer.Problems {
		p := &answer.Problems[i]
		p.File = filepath.Join(trees[p.Project], p.Path)
	}
	return answer, err
}
