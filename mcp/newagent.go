package mcp

import (
	"context"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// NewAgent is the body of POST /mailtree/agent. It describes an agent to create under exactly the given name.
type NewAgent struct {
	Name string `json:"name"`
	maildir.Registration
}

// MadeAgent is the response to POST /mailtree/agent.
type MadeAgent struct {
	Name    string `json:"name"`
	Project string `json:"project"` // slug
}

func (s *Server) newAgent(ctx context.Context, p *maildir.Project, ask *NewAgent) (made MadeAgent, err error) {
	return MadeAgent{ask.Name, p.Slug}, p.Agents.NewAgent(ctx, ask.Name, ask.Registration)
}

// NewDraft is the body of POST /mailtree/draft. It names the author and the recipients of a draft to create.
type NewDraft struct {
	Agent string   `json:"agent"`
	To    []string `json:"to,omitempty"`
}

// MadeDraft is the response to POST /mailtree/draft.
type MadeDraft struct {
	File   string `json:"file"`   // path of the new draft
	Outbox string `json:"outbox"` // moving the draft into this folder sends it
}

func (s *Server) newDraft(ctx context.Context, p *maildir.Project, ask *NewDraft) (made MadeDraft, err error) {
	made.File, made.Outbox, err = tool.Box(ctx, p, ask.Agent).NewDraft(ctx, tool.Listed(ask.To))
	return made, err
}
