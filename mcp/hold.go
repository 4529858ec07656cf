package mcp

import (
	"context"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/refusal"
	"mailtree/mcp/tool"
)

// HoldAsk is the body of POST /mailtree/hold and go.
type HoldAsk struct {
	Person  string `json:"person"` // the user who holds the agent, or ends the hold
	Agent   string `json:"agent"`
	Reason  string `json:"reason,omitempty"`      // for hold
	Seconds int    `json:"ttl_seconds,omitempty"` // for hold: how long; 0: 8 hours
}

// holdAgent holds an agent. Only users may do this.
func (s *Server) holdAgent(ctx context.Context, p *maildir.Project, ask *HoldAsk) (*maildir.Held, error) {
	if err := needPerson(ctx, p, ask.Person); err != nil {
		return nil, err
	}
	return tool.Box(ctx, p, ask.Person).Hold(ctx, maildir.Holding{
		Agent:  ask.Agent,
		Reason: ask.Reason,
		For:    time.Duration(ask.Seconds) * time.Second,
	})
}

// endHold ends an agent's hold. Only users may do this.
func (s *Server) endHold(ctx context.Context, p *maildir.Project, ask *HoldAsk) (*maildir.Held, error) {
	if err := needPerson(ctx, p, ask.Person); err != nil {
		return nil, err
	}
	return tool.Box(ctx, p, ask.Person).Go(ctx, ask.Agent)
}

// needPerson returns ErrInvalid if the name is not a user's.
func needPerson(ctx context.Context, p *maildir.Project, name string) error {
	is, err := p.Agents.IsPerson(ctx, name)
	if err != nil || is {
		return err
	}
	return &maildir.Error{
		What: refusal.Invalid("{=name} is not a person, and only a person may hold an agent or end a hold."),
		Name: name,
	}
}
