package maildir

import (
	"context"
	"fmt"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/waiting"
)

// lister returns a Lister that lists what is waiting for an agent.
func (p *Project) lister(agent string) *waiting.Lister {
	return &waiting.Lister{Mail: p.mail, Claims: p.Claims, Sessions: p.Sessions, Holds: p.Holds, Agent: agent}
}

// Waits returns what is waiting for the agent. It ignores the case of the agent's name. See waiting.Lister.List.
func (b *Box) Waits(ctx context.Context, q WaitsQuery) (*Waits, error) {
	agent, err := b.p.mail.AgentNamed(ctx, b.agent)
	if err != nil {
		return nil, err
	}
	return b.p.lister(agent).List(ctx, q)
}

// Dismiss hides the diagnostics that Waits currently lists from the agent's future lists. See waiting.Lister.Dismiss.
func (b *Box) Dismiss(ctx context.Context) (*Dismissed, error) {
	return b.p.lister(b.agent).Dismiss(ctx)
}

// Decides reports whether Decide can answer a message. See waiting.Lister.Decides.
func (b *Box) Decides(m *index.Delivery) bool { return b.p.lister(b.agent).Decides(m) }

// WaitsEverywhere is like Box.Waits, but for all projects of the store. The result lists each thread and each prompt
// with its project's slug.
func (s *Store) WaitsEverywhere(ctx context.Context, agent string, q WaitsQuery) (*Waits, error) {
	var each []*Waits
	for _, p := range s.Projects() {
		w, err := p.Box(agent, format.Origin{}).Waits(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("cannot list what is waiting in project %s: %w", p.Slug, err)
		}
		each = append(each, w)
	}
	return WaitsTogether(agent, each, q), nil
}

// WaitsTogether merges the lists of what is waiting for an agent in several projects. See waiting.Together.
func WaitsTogether(agent string, each []*Waits, q WaitsQuery) *Waits {
	return waiting.Together(agent, each, q)
}
