package maildir

import (
	"sync/atomic"

	"mailtree/maildir/index"
	"mailtree/maildir/seat"
)

// Types records that notices are typed into tmux windows, until done.
func (s *Store) Types() (done func()) {
	s.typing.Add(1)
	return func() { s.typing.Add(-1) }
}

// typing counts the callers of Store.Types.
type typing struct{ atomic.Int32 }

func (t *typing) on() bool { return t.Load() > 0 }

const notTyped = "this server types into no tmux window (NUDGE=tmux)"

// Unwakeable says why mail cannot wake an agent now. It returns "" if mail wakes the agent or reaches it
// within its turn. It also returns "" for people, and for agents of other machines, because this server does
// not know their sessions.
func (p *Project) Unwakeable(a *index.AgentRow) (why string) {
	if a.Program == personProgram || p.MachineOf(a) != "" {
		return ""
	}
	live, ended := p.seats.Sessions(a.Name)
	for i := range live {
		if why = p.unwakeable(&live[i]); why == "" {
			return ""
		}
	}
	switch {
	case why != "":
		return why
	case p.seats.Window(a.Name).Pane.Tmux != "" && p.store.typing.on():
		return ""
	case p.seats.Window(a.Name).Pane.Tmux != "":
		return notTyped
	case len(ended) > 0:
		return "none of its sessions is open"
	}
	return "it has no session with the hooks of mailtree setup"
}

// unwakeable is Unwakeable for a live session.
func (p *Project) unwakeable(s *seat.Seat) string {
	way := s.Way()
	switch {
	case s.Asks:
		return "its client waits for the user's answer to a permission question"
	case !s.Idle(p.store.cfg.Now()) || p.waiters.awaited(s.Key):
		return ""
	case way == "":
		return "its client does not wait for mail and does not run in tmux"
	case way == seat.InWindow && !p.store.typing.on():
		return "its client does not wait for mail, and " + notTyped
	case s.Wake.Outcome == seat.Nobody:
		return "the last attempt failed: " + s.Wake.Why
	}
	return ""
}
