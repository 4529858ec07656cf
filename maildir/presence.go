package maildir

import (
	"context"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// CheckPresence refuses a word that is not exactly ready, work or offline. Errors: ErrInvalid.
// See docs/agentmail.md, "Presence".
func CheckPresence(status string) error {
	if status != format.Ready && status != format.Work && status != format.Offline {
		return &Error{What: refusal.StatusUnknown, Field: refusal.Status, Name: status}
	}
	return nil
}

// SetPresence writes the agent's status file: ready, work or offline. Errors: ErrNotFound,
// ErrInvalid.
func (p *Project) SetPresence(ctx context.Context, agent, status string) error {
	if err := CheckPresence(status); err != nil {
		return err
	}
	tx := &writer.Tx{Op: writer.Op{Verb: "presence", Agent: agent, Summary: agent + " is " + status}, Keys: writer.On("presence " + agent)}
	tx.Plan = func(g *writer.Group) error {
		if err := p.needAgent(g.Ctx, refusal.Agent, agent); err != nil {
			return err
		}
		row, err := p.store.index.Agent(g.Ctx, p.slug, agent)
		if err != nil {
			return err
		}
		if row != nil && row.Status == status {
			data, _, err := p.tree.Read(format.StatusPath(agent), format.MaxSmall)
			if says, bad := format.ParseStatus(data); err == nil && bad == nil && says == status {
				return nil
			}
			return g.Stale(format.StatusPath(agent))
		}
		return g.Replace(tx, format.StatusPath(agent), []byte(status+"\n"))
	}
	defer p.noteSeen(ctx, agent)
	return p.writer.Do(ctx, tx)
}
