package mcp

import (
	"context"
	"path/filepath"

	"mailtree/maildir"
	"mailtree/maildir/format"
)

// Problems lists the invalid files, sorted by path.
type Problems struct {
	Problems []format.Problem `json:"problems"`
	More     bool             `json:"more"` // whether there are more invalid files than are listed
}

// mostProblems is the maximum number of files in the response to POST /mailtree/problems.
const mostProblems = 1000

// problems lists the invalid files of the project, or of all projects if the request does not name one.
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
		trees[p.Slug] = p.Dir()
	}
	for i := range answer.Problems {
		p := &answer.Problems[i]
		p.File = filepath.Join(trees[p.Project], p.Path)
	}
	return answer, err
}
