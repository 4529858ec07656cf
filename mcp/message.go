package mcp

import (
	"context"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// MessageAsk is the body of POST /mailtree/archive and its like: what a person does to a message.
type MessageAsk struct {
	Agent string `json:"agent"` // the person's
	ID    string `json:"id,omitempty"`

	Text    string `json:"text,omitempty"`    // of POST /mailtree/amend: see maildir.Amendable
	Version string `json:"version,omitempty"` // as Text
}

// Archived is the answer of POST /mailtree/archive.
type Archived struct {
	ID      string `json:"message_id"`
	Subject string `json:"subject"`
}

// Deleted is the answer of POST /mailtree/delete.
type Deleted struct {
	ID      string   `json:"message_id"`
	From    string   `json:"from"`
	Subject string   `json:"subject"`
	ReadBy  []string `json:"read_by"` // who had read it, but its sender
	Files   []string `json:"files"`   // that are gone, by path in the tree
}

func (s *Server) archiveMessage(ctx context.Context, p *maildir.Project, ask *MessageAsk) (*Archived, error) {
	d, err := tool.Box(ctx, p, ask.Agent).Archive(ctx, ask.ID)
	if err != nil {
		return nil, err
	}
	return &Archived{d.ID, d.Subject}, nil
}

func (s *Server) deleteMessage(ctx context.Context, p *maildir.Project, ask *MessageAsk) (*Deleted, error) {
	d, err := tool.Box(ctx, p, ask.Agent).Delete(ctx, ask.ID)
	if err != nil {
		return nil, err
	}
	return &Deleted{
		ID:      d.ID,
		From:    d.From,
		Subject: d.Subject,
		ReadBy:  tool.Listed(d.Readers()),
		Files:   d.Files,
	}, nil
}

// Undone is the answer of POST /mailtree/undo.
type Undone struct {
	ID        string   `json:"message_id,omitempty"`
	Operation string   `json:"operation"` // send, edit, archive, claim …: see maildir.Deed
	At        string   `json:"at"`
	ReadBy    []string `json:"read_by"`         // of a message that was withdrawn or changed: who had read it, and is told
	Paths     []string `json:"paths,omitempty"` // of an operation on claims
}

func (s *Server) undo(ctx context.Context, p *maildir.Project, ask *MessageAsk) (*Undone, error) {
	u, err := tool.Box(ctx, p, ask.Agent).Undo(ctx, maildir.Undoing{ID: ask.ID})
	if err != nil {
		return nil, err
	}
	return &Undone{
		ID:        u.ID,
		Operation: maildir.Deed(u.Verb),
		At:        tool.Stamp(u.At),
		ReadBy:    tool.Listed(u.Readers),
		Paths:     u.Patterns,
	}, nil
}

func (s *Server) amendable(ctx context.Context, p *maildir.Project, ask *MessageAsk) (*maildir.Amendable, error) {
	return p.Amendable(ctx, ask.ID)
}

// Amended is the answer of POST /mailtree/amend.
type Amended struct {
	ID      string   `json:"message_id"`
	Subject string   `json:"subject"`
	Same    bool     `json:"same,omitempty"` // nothing was changed
	Sealed  bool     `json:"sealed"`         // false where another's message was changed
	ReadBy  []string `json:"read_by"`        // who had read what it said, or wrote it, and is told
	Left    []string `json:"left,omitempty"` // copies that somebody had edited, by path in the tree
}

func (s *Server) amend(ctx context.Context, p *maildir.Project, ask *MessageAsk) (*Amended, error) {
	a, err := tool.Box(ctx, p, ask.Agent).Amend(ctx, maildir.Amendment{
		ID:      ask.ID,
		Text:    ask.Text,
		Version: ask.Version,
	})
	if err != nil {
		return nil, err
	}
	return &Amended{
		ID:      a.ID,
		Subject: a.Subject,
		Same:    a.Same,
		Sealed:  a.From == ask.Agent,
		ReadBy:  tool.Listed(a.Readers),
		Left:    a.Left,
	}, nil
}
