package mcp

import (
	"context"
	"time"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// MessageAsk is the body of POST /mailtree/archive, delete, undo, redo, undoable, amendable and amend.
type MessageAsk struct {
	Agent string `json:"agent"` // the user's agent
	ID    string `json:"id,omitempty"`

	Verb    string `json:"verb,omitempty"`     // only for POST /mailtree/undo (see maildir.Undoing)
	ByAgent bool   `json:"by_agent,omitempty"` // only for POST /mailtree/undo and redo (see maildir.Undoing)
	Text    string `json:"text,omitempty"`     // only for POST /mailtree/amend (see maildir.Amendable)
	Version string `json:"version,omitempty"`  // only for POST /mailtree/amend
}

// Archived is the response to POST /mailtree/archive.
type Archived struct {
	ID      string `json:"message_id"`
	Subject string `json:"subject"`
}

func (s *Server) archiveMessage(ctx context.Context, p *maildir.Project, ask *MessageAsk) (*Archived, error) {
	d, err := tool.Box(ctx, p, ask.Agent).Archive(ctx, ask.ID)
	if err != nil {
		return nil, err
	}
	return &Archived{d.ID, d.Subject}, nil
}

// DecideAsk is the body of POST /mailtree/decide.
type DecideAsk struct {
	Agent string `json:"agent"`
	maildir.Decision
}

func (s *Server) decide(ctx context.Context, p *maildir.Project, ask *DecideAsk) (*maildir.Decided, error) {
	return tool.Box(ctx, p, ask.Agent).Decide(ctx, ask.Decision)
}

// LaterAsk is the body of POST /mailtree/later.
type LaterAsk struct {
	Agent  string        `json:"agent"`
	Thread string        `json:"thread"` // id of the thread or of a message in it
	For    time.Duration `json:"for_ns"`
}

func (s *Server) later(ctx context.Context, p *maildir.Project, ask *LaterAsk) (*maildir.Deferred, error) {
	return tool.Box(ctx, p, ask.Agent).Later(ctx, ask.Thread, ask.For)
}

// FinishAsk is the body of POST /mailtree/finish.
type FinishAsk struct {
	Agent string   `json:"agent"`
	IDs   []string `json:"message_ids"`
}

// Finished is the response to POST /mailtree/finish.
type Finished struct {
	IDs []string `json:"message_ids"` // the messages that were unread
}

func (s *Server) finishMessages(ctx context.Context, p *maildir.Project, ask *FinishAsk) (*Finished, error) {
	read, err := tool.Box(ctx, p, ask.Agent).Finish(ctx, ask.IDs)
	if err != nil {
		return nil, err
	}
	return &Finished{read}, nil
}

func (s *Server) deleteMessage(ctx context.Context, p *maildir.Project, ask *MessageAsk) (*maildir.Deleted, error) {
	return tool.Box(ctx, p, ask.Agent).Delete(ctx, ask.ID)
}

func (s *Server) undo(ctx context.Context, p *maildir.Project, ask *MessageAsk) (*maildir.Undone, error) {
	return tool.Box(ctx, p, ask.Agent).Undo(ctx, maildir.Undoing{ID: ask.ID, Verb: ask.Verb, ByAgent: ask.ByAgent})
}

func (s *Server) redo(ctx context.Context, p *maildir.Project, ask *MessageAsk) (*maildir.Undone, error) {
	return tool.Box(ctx, p, ask.Agent).Redo(ctx, maildir.Undoing{ID: ask.ID, ByAgent: ask.ByAgent})
}

// Undoable is the response to POST /mailtree/undoable.
type Undoable struct {
	Acts []maildir.OperationInfo `json:"operations"` // newest first
}

// mostUndoable is the maximum number of operations in a list of undoable operations.
const mostUndoable = 50

func (s *Server) undoable(ctx context.Context, p *maildir.Project, ask *MessageAsk) (*Undoable, error) {
	acts, err := tool.Box(ctx, p, ask.Agent).Undoable(ctx, mostUndoable)
	return &Undoable{acts}, err
}

func (s *Server) amendable(ctx context.Context, p *maildir.Project, ask *MessageAsk) (*maildir.Amendable, error) {
	return p.Amendable(ctx, ask.ID)
}

func (s *Server) amend(ctx context.Context, p *maildir.Project, ask *MessageAsk) (*maildir.Amended, error) {
	return tool.Box(ctx, p, ask.Agent).Amend(ctx, maildir.Amendment{ID: ask.ID, Text: ask.Text, Version: ask.Version})
}
