package mcp

import (
	"context"
	"path/filepath"

	"mailtree/maildir/format"
)

// ProblemsAsk is the body of POST /mailtree/problems: whose problems. Slug "" is every project.
type ProblemsAsk struct {
	Slug string `json:"slug,omitempty"`
}

// Problems are files that are not valid, by path.
type Problems struct {
	Problems []Problem `json:"problems"`
	More     bool      `json:"more"` // there are more than these
}

// Problem is a file that is not valid.
type Problem struct {
	Project string `json:"project"` // slug
	Path    string `json:"path"`    // in the project's tree
	File    string `json:"file"`    // the same, absolute
	Line    int    `json:"line"`    // 0 where a line makes no sense
	Text    string `json:"text"`    // what is wrong, and how to mend it
}

// mostProblems is how many POST /mailtree/problems lists.
const mostProblems = 1000

func (s *Server) problems(ctx context.Context, ask *ProblemsAsk) (answer Problems, err error) {
	answer.Problems = []Problem{}
	all, err := s.cfg.Store.Problems(ctx, ask.Slug, mostProblems+1)
	if len(all) > mostProblems {
		all, answer.More = all[:mostProblems], true
	}
	trees := map[string]string{}
	for _, p := range s.cfg.Store.Projects() {
		trees[p.Slug] = p.Tree.Dir()
	}
	for _, p := range all {
		answer.Problems = append(answer.Problems, shapeProblem(p, trees[p.Project]))
	}
	return answer, err
}

func shapeProblem(p format.Problem, dir string) Problem {
	return Problem{
		Project: p.Project,
		Path:    p.Path,
		File:    filepath.Join(dir, p.Path),
		Line:    p.Line,
		Text:    p.Reason,
	}
}
