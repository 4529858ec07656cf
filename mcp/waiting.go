package mcp

import (
	"context"

	"mailtree/maildir"
)

// Waiting lists the agents and files of a project that need a person, beside the unread mail.
type Waiting struct {
	Unwoken  []string `json:"unwoken"`  // a sentence for each agent that has unread mail and cannot be woken
	Problems int      `json:"problems"` // files that are not valid
}

func (s *Server) waiting(ctx context.Context, p *maildir.Project, _ *struct{}) (out Waiting, err error) {
	asleep, err := p.Unwoken(ctx)
	if err != nil {
		return out, err
	}
	for _, u := range asleep {
		out.Unwoken = append(out.Unwoken, u.String())
	}
	out.Problems, err = p.CountProblems(ctx)
	return out, err
}
