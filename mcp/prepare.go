package mcp

import (
	"context"

	"mailtree/maildir"
	"mailtree/mcp/tool"
)

// Envelope is the body of POST /mailtree/prepare, and also its response. The response contains the values that the
// message would have if it were sent.
type Envelope struct {
	Agent   string   `json:"agent"`
	Answers string   `json:"answers,omitempty"` // id of the message being answered
	To      []string `json:"to,omitempty"`
	CC      []string `json:"cc,omitempty"`
	BCC     []string `json:"bcc,omitempty"`
	Subject string   `json:"subject,omitempty"`

	Audience maildir.Audience `json:"audience,omitempty"` // the recipients of an answer, if To is empty
}

func (s *Server) envelope(ctx context.Context, p *maildir.Project, ask *Envelope) (Envelope, error) {
	d, err := tool.Box(ctx, p, ask.Agent).Prepare(ctx, ask.Answers, maildir.Draft{
		To: ask.To, CC: ask.CC, BCC: ask.BCC, Subject: ask.Subject, Audience: ask.Audience,
	})
	if err != nil {
		return Envelope{}, err
	}
	return Envelope{Agent: ask.Agent, Answers: ask.Answers, To: d.To, CC: d.CC, BCC: d.BCC, Subject: d.Subject}, nil
}
