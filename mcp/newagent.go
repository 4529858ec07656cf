package mcp

import (
	"context"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// NewAgent is the body of POST /mailtree/agent: which agent there is to be, of exactly that name.
type NewAgent struct {
	Name string `json:"name"`
	maildir.Registration
}

// MadeAgent is the answer.
type MadeAgent struct {
	Name    string `json:"name"`
	Project string `json:"project"` // slug
}

func (s *Server) newAgent(ctx context.Context, p *maildir.Project, ask *NewAgent) (made MadeAgent, err error) {
	return MadeAgent{ask.Name, p.Slug}, p.NewAgent(ctx, ask.Name, ask.Registration)
}

// NewDraft is the body of POST /mailtree/draft: whose draft there is to be, and to whom.
type NewDraft struct {
	Agent string   `json:"agent"`
	To    []string `json:"to,omitempty"`
}

// MadeDraft is the answer.
type MadeDraft struct {
	File   string `json:"file"`   // on the disk
	Outbox string `json:"outbox"` // the folder in which it is sent
}

func (s *Server) newDraft(ctx context.Context, p *maildir.Project, ask *NewDraft) (made MadeDraft, err error) {
	made.File, made.Outbox, err = tool.Box(ctx, p, ask.Agent).NewDraft(ctx, tool.Listed(ask.To))
	return made, err
}
