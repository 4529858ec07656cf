package mcp

import (
	"net/http"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// NewAgent is the body of POST /mailtree/agent: which agent there is to be, of exactly that name.
type NewAgent struct {
	Project string `json:"project"` // slug
	Name    string `json:"name"`
	Program string `json:"program,omitempty"`
	Model   string `json:"model,omitempty"`
	Task    string `json:"task_description,omitempty"`
}

// MadeAgent is the answer.
type MadeAgent struct {
	Name    string `json:"name"`
	Project string `json:"project"` // slug
}

func (s *Server) newAgent(w http.ResponseWriter, r *http.Request) {
	var ask NewAgent
	if !s.readVerb(w, r, &ask) {
		return
	}
	p, err := s.cfg.Store.Project(r.Context(), ask.Project)
	if err == nil {
		err = p.NewAgent(r.Context(), ask.Name, maildir.Registration{
			Program: ask.Program,
			Model:   ask.Model,
			Task:    ask.Task,
		})
	}
	s.answerVerb(w, r, MadeAgent{ask.Name, ask.Project}, err)
}

// NewDraft is the body of POST /mailtree/draft: whose draft there is to be, and to whom.
type NewDraft struct {
	Project string   `json:"project"` // slug
	Agent   string   `json:"agent"`
	To      []string `json:"to,omitempty"`
}

// MadeDraft is the answer.
type MadeDraft struct {
	File   string `json:"file"`   // on the disk
	Outbox string `json:"outbox"` // the folder in which it is sent
}

func (s *Server) newDraft(w http.ResponseWriter, r *http.Request) {
	var ask NewDraft
	if !s.readVerb(w, r, &ask) {
		return
	}
	p, err := s.cfg.Store.Project(r.Context(), ask.Project)
	var made MadeDraft
	if err == nil {
		made.File, made.Outbox, err = p.NewDraft(r.Context(), ask.Agent, tool.Strs(ask.To))
	}
	s.answerVerb(w, r, made, err)
}
