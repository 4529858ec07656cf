package mcp

import (
	"net/http"

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

func (s *Server) newProject(w http.ResponseWriter, r *http.Request) {
	var ask NewProject
	if !s.readVerb(w, r, &ask) {
		return
	}
	p, err := s.cfg.Store.EnsureProject(r.Context(), ask.Key)
	if err != nil {
		s.answerVerb(w, r, nil, err)
		return
	}
	s.answerVerb(w, r, Made(p), nil)
}
