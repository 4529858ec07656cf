package mcp

import "net/http"

// WaitingAsk is the body of POST /mailtree/waiting.
type WaitingAsk struct {
	Project string `json:"project"` // as of DeskAsk
}

// Waiting is what a project waits for besides the mail of the one who asks.
type Waiting struct {
	Unwoken  []string `json:"unwoken"`  // a sentence for each agent that has unread mail and cannot be woken
	Problems int      `json:"problems"` // files that are not valid
}

func (s *Server) waiting(w http.ResponseWriter, r *http.Request) {
	var ask WaitingAsk
	if !s.readVerb(w, r, &ask) {
		return
	}
	out, err := s.waitingIn(r, ask.Project)
	s.answerVerb(w, r, out, err)
}

func (s *Server) waitingIn(r *http.Request, project string) (out Waiting, err error) {
	p, err := s.cfg.Store.ProjectNamed(r.Context(), project)
	if err != nil {
		return out, err
	}
	out.Unwoken = []string{}
	asleep, err := p.Unwoken(r.Context())
	if err != nil {
		return out, err
	}
	for _, u := range asleep {
		out.Unwoken = append(out.Unwoken, u.String())
	}
	out.Problems, err = p.CountProblems(r.Context())
	return out, err
}
