package maildir

import "context"

// CheckPresence refuses a word that is not exactly ready, work or offline. Errors: ErrInvalid. Spec: TOOLS.md agentmail.
func CheckPresence(status string) error {
	if status != Ready && status != Work && status != Offline {
		return errorf(ErrInvalid, "Invalid status: %s. Valid: ready, work, offline", cut(status, 120))
	}
	return nil
}

// SetPresence writes the agent's status file: ready, work or offline. Errors: ErrNotFound, ErrInvalid.
func (p *Project) SetPresence(ctx context.Context, agent, status string) error {
	if err := CheckPresence(status); err != nil {
		return err
	}
	o := &op{Op: Op{Verb: "presence", Agent: agent, Summary: agent + " is " + status}, lock: "presence " + agent}
	o.plan = func(g *group) error {
		if err := p.needAgent(g.ctx, agent); err != nil {
			return err
		}
		row, err := p.store.index.Agent(g.ctx, p.slug, agent)
		if err != nil {
			return err
		}
		if row != nil && row.Status == status {
			data, _, err := p.tree.Read(statusPath(agent), MaxSmall)
			if says, bad := ParseStatus(data); err == nil && bad == nil && says == status {
				return nil
			}
			return g.stale(statusPath(agent))
		}
		return g.planReplace(o, statusPath(agent), []byte(status+"\n"))
	}
	defer p.Seen(agent)
	return p.do(ctx, o)
}
