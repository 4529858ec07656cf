package mcp

import (
	"context"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// HoldAsk is the body of POST /mailtree/hold and /mailtree/go.
type HoldAsk struct {
	Person  string `json:"person"` // the user who begins or ends the hold
	Agent   string `json:"agent"`
	Reason  string `json:"reason,omitempty"`      // only for POST /mailtree/hold
	Seconds int    `json:"ttl_seconds,omitempty"` // only for POST /mailtree/hold: the duration; 0 means 8 hours
}

// holdAgent begins a hold on an agent. Only users may do this.
func (s *Server) holdAgent(ctx context.Context, p *maildir.Project, ask *HoldAsk) (*maildir.Held, error) {
	agent, err := ask.toHold(ctx, p)
	if err != nil {
		return nil, err
	}
	return tool.Box(ctx, p, ask.Person).Hold(ctx, maildir.Holding{
		Agent:  agent,
		Reason: ask.Reason,
		For:    time.Duration(ask.Seconds) * time.Second,
	})
}

// endHold ends the hold on an agent. Only users may do this.
func (s *Server) endHold(ctx context.Context, p *maildir.Project, ask *HoldAsk) (*maildir.Held, error) {
	agent, err := ask.toHold(ctx, p)
	if err != nil {
		return nil, err
	}
	return tool.Box(ctx, p, ask.Person).Go(ctx, agent)
}

// toHold returns the name of the agent that the request specifies. The user may type the name in any letter case.
// toHold returns ErrInvalid if ask.Person is not a user.
func (ask *HoldAsk) toHold(ctx context.Context, p *maildir.Project) (agent string, err error) {
	is, err := p.Agents.IsPerson(ctx, ask.Person)
	if err != nil {
		return "", err
	}
	if !is {
		return "", &maildir.Error{
			What: refusal.Invalid("{=name} is not a user, and only users may hold an agent or end a hold."),
			Name: ask.Person,
		}
	}
	return p.Agents.Named(ctx, ask.Agent)
}
