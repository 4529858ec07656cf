package mcp

import (
	"context"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// ForwardAsk is the body of POST /mailtree/forward.
type ForwardAsk struct {
	Agent       string   `json:"agent"` // the sender
	ID          string   `json:"id"`    // the message to forward
	To          []string `json:"to"`
	Text        string   `json:"text,omitempty"`
	Attachments []string `json:"attachments,omitempty"` // additional files, as in the send_message tool
}

// Forwarded is the response to POST /mailtree/forward.
type Forwarded struct {
	ID      string   `json:"id"`
	To      []string `json:"to"`
	Subject string   `json:"subject"`
	Queued  []string `json:"queued,omitempty"` // projects to which the message has yet to be delivered
}

// forward forwards a message to other agents.
func (s *Server) forward(ctx context.Context, p *maildir.Project, ask *ForwardAsk) (f Forwarded, err error) {
	sent, err := tool.Box(ctx, p, ask.Agent).Forward(ctx, ask.ID, maildir.Draft{
		To:          ask.To,
		Body:        ask.Text,
		Attachments: ask.Attachments,
		WorkDir:     tool.CallerOf(ctx).WorkDir(""),
		Anywhere:    true,
	})
	if err != nil {
		return f, err
	}
	return Forwarded{sent.ID, sent.To, sent.Subject, sent.Queued}, nil
}
