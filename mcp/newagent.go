package mcp

import (
	"context"

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

func (s *Server) newAgent(ctx context.Context, ask *NewAgent) (made MadeAgent, err error) {
	p, err := s.cfg.Store.Project(ctx, ask.Project)
	if err != nil {
		return made, err
	}
	return MadeAgent{ask.Name, ask.Project}, p.NewAgent(ctx, ask.Name, maildir.Registration{
		Program: ask.Program,
		Model:   ask.Model,
		Task:    ask.Task,
	})
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

func (s *Server) newDraft(ctx context.Context, ask *NewDraft) (made MadeDraft, err error) {
	p, err := s.cfg.Store.Project(ctx, ask.Project)
	if err != nil {
		return made, err
	}
	made.File, made.Outbox, err = tool.Box(ctx, p, ask.Agent).NewDraft(ctx, tool.Listed(ask.To))
	return made, err
}
