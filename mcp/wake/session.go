package wake

import (
	"context"
	"errors"

	"mailtree/maildir"
	"mailtree/maildir/session"
	"mailtree/mcp/agentmail/tmux"
)

// wakeSessions wakes the idle sessions of an agent. Nobody notes here that they were told: the
// prompt that begins the turn makes the client's hook tell what is unread by then.
func (n *Waker) wakeSessions(ctx context.Context, by By, p *maildir.Project, agent string) (all []Outcome, err error) {
	sleepers, err := by.sleepers(ctx, p, agent)
	for i := range sleepers {
		s := &sleepers[i]
		o := Outcome{Project: p.Slug, Agent: agent, New: s.New}
		if s.Works {
			o.Why = "it works"
			all = append(all, o)
			continue
		}
		if s.Rests {
			o.Why = "two agents write to each other without a pause: the wake waits for a minute"
			all = append(all, o)
			continue
		}
		how, why := n.wakeOne(ctx, by, p, s)
		if o.How = how; why != nil {
			o.How, o.Why = session.Nobody, why.Error()
		}
		p.NoteWake(s.Key, session.Wake{Outcome: o.How, For: s.Newest, Why: o.Why})
		all = append(all, o)
	}
	return all, err
}

// sleepers are the sessions of an agent that are to be woken.
func (by By) sleepers(ctx context.Context, p *maildir.Project, agent string) ([]maildir.Sleeper, error) {
	if by.Again {
		return p.SleepersAgain(ctx, agent)
	}
	return p.Sleepers(ctx, agent)
}

// wakeOne wakes a session in the best way that its client has. The error says why nobody could.
func (n *Waker) wakeOne(ctx context.Context, by By, p *maildir.Project, s *maildir.Sleeper) (how string, why error) {
	switch way := s.Way(); {
	case way == session.ByQueue:
		return session.Queued, queueCodex(ctx, &s.State, notice(ctx, p, s.Agent))
	case way == "":
		return "", errors.New("its client does not wait for mail, and does not run in tmux")
	case !by.Types:
		return "", errors.New("its client does not wait for mail, and nothing is typed into windows here")
	}
	text := notice(ctx, p, s.Agent)
	window, pane, err := look(ctx, s.Seat.Tmux, s.Seat.Pane, func(at tmux.Pane) bool { return at.ID == s.Seat.Pane })
	if err == nil {
		err = window.Free(ctx, pane, text)
	}
	if err != nil {
		return "", err
	}
	if still, err := by.sleepers(ctx, p, s.Agent); err != nil || !isAmong(still, s) { // tmux took its time
		return session.Typed, err
	}
	return session.Typed, window.Type(context.WithoutCancel(ctx), pane, text, n.cfg.Pause)
}

func isAmong(all []maildir.Sleeper, s *maildir.Sleeper) bool {
	for i := range all {
		if all[i].Key == s.Key {
			return true
		}
	}
	return false
}
