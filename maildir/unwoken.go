package maildir

import (
	"context"
	"fmt"
	"time"

	"mailtree/maildir/format"
)

// Unwoken is an agent whose mail lies unread, and nobody can be woken for it: it never was a session,
// or of its sessions all have ended, or none could be reached.
type Unwoken struct {
	Agent  string        `json:"agent"`
	Unread int           `json:"unread"` // at most seat.Most
	Since  time.Time     `json:"since"`  // the oldest of them
	Age    time.Duration `json:"age_ns"`
	Never  bool          `json:"never"` // it was no session
	Ended  bool          `json:"ended"` // all of its sessions
}

// UnwokenAfter is how long mail lies before anybody is told that it does.
const UnwokenAfter = 10 * time.Minute

// Why says why nobody can be woken.
func (u *Unwoken) Why() string {
	switch {
	case u.Never:
		return "it never was a session of a client that mailtree setup set up, and is in no tmux window"
	case u.Ended:
		return "none of its sessions goes on"
	}
	return "none of its sessions could be reached"
}

// String says so in a sentence.
func (u *Unwoken) String() string {
	return fmt.Sprintf("%s has had unread mail for %s, and nobody can be woken for it: %s.", u.Agent, format.TimeLeft(u.Age), u.Why())
}

// Unwoken lists by name the agents whose mail lies so for UnwokenAfter.
func (p *Project) Unwoken(ctx context.Context) (all []Unwoken, err error) {
	rows, err := p.store.index.Agents(ctx, p.Slug)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if rows[i].Unread == 0 {
			continue
		}
		u, err := p.AgentUnwoken(ctx, rows[i].Name)
		if err != nil {
			return nil, err
		}
		if u != nil {
			all = append(all, *u)
		}
	}
	return all, nil
}

// AgentUnwoken is Unwoken for one agent, nil where it is none of them.
func (p *Project) AgentUnwoken(ctx context.Context, agent string) (*Unwoken, error) {
	now := p.store.cfg.Now()
	live, ended := p.seats.Sessions(agent)
	u := &Unwoken{Agent: agent, Never: len(live)+len(ended) == 0, Ended: len(live) == 0}
	if u.Never {
		if looks, err := p.looksItself(ctx, agent); err != nil || looks {
			return nil, err
		}
	}
	for _, s := range live {
		if !s.Idle(now) || p.waiters.awaited(s.Key) || s.Wake.Succeeded() {
			return nil, nil
		}
	}
	mail, err := p.unreadOf(ctx, agent)
	if n := len(mail.newest); err == nil && n > 0 && now.Sub(mail.newest[n-1].Created) >= UnwokenAfter {
		u.Unread, u.Since = n, mail.newest[n-1].Created
		u.Age = now.Sub(u.Since)
		return u, nil
	}
	return nil, err
}

// looksItself reports whether an agent that never was a session looks for its mail by itself, or is
// told: it is a person, or was here within UnwokenAfter, or sits in a tmux window.
func (p *Project) looksItself(ctx context.Context, agent string) (bool, error) {
	row, err := p.store.index.Agent(ctx, p.Slug, agent)
	if err != nil || row == nil {
		return true, err
	}
	p.addSeen(row)
	return row.Program == personProgram || p.store.cfg.Now().Sub(row.LastActive) < UnwokenAfter || p.seats.Window(agent).Pane.Tmux != "", nil
}
