package wake

import (
	"context"
	"fmt"
	"slices"
	"time"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/seat"
)

const notTyped = "this server does not type into tmux windows (NUDGE=tmux turns that on)"

// Unwakeable returns the reason why mail cannot wake an agent right now. It returns "" if mail wakes the agent or
// reaches it during its turn. It also returns "" for users' agents, and for agents on other machines, because this
// server has no record of their sessions.
func (ss *Sessions) Unwakeable(a *index.AgentRow) (why string) {
	if a.Program == core.PersonProgram || ss.mail.MachineOf(a) != "" {
		return ""
	}
	live, ended := ss.mail.Seats.Sessions(a.Name)
	for i := range live {
		if why = ss.unwakeable(&live[i]); why == "" {
			return ""
		}
	}
	switch {
	case why != "":
		return why
	case ss.mail.Seats.Window(a.Name).Pane.Tmux != "" && ss.windows.typed():
		return ""
	case ss.mail.Seats.Window(a.Name).Pane.Tmux != "":
		return notTyped
	case len(ended) > 0:
		return "none of its sessions is open"
	}
	return "it has no session with the hooks that mailtree setup installs"
}

// unwakeable is like Unwakeable, but for a live session.
func (ss *Sessions) unwakeable(s *seat.Seat) string {
	way := s.Way()
	switch {
	case s.Asks:
		return "its client is waiting for the user's answer at a permission prompt"
	case !s.Idle(ss.mail.Store.Now()) || ss.waiters.awaited(s.Key):
		return ""
	case way == "":
		return "its client is not waiting for mail and is not running in tmux"
	case way == seat.InWindow && !ss.windows.typed():
		return "its client is not waiting for mail, and " + notTyped
	case s.Wake.Outcome == seat.Nobody:
		return "the last attempt failed: " + s.Wake.Why
	}
	return ""
}

// Unwoken is an agent with unread mail that cannot be woken. The agent never had a session, all of its sessions have
// ended, or none of its sessions can be reached.
type Unwoken struct {
	Project string        `json:"project,omitempty"` // slug; set only in a list of all projects
	Agent   string        `json:"agent"`
	Unread  int           `json:"unread"` // number of unread messages, at most seat.Most
	Since   time.Time     `json:"since"`  // when the oldest unread message was created
	Age     time.Duration `json:"age_ns"`
	Never   bool          `json:"never"` // the agent never had a session
	Ended   bool          `json:"ended"` // all of the agent's sessions have ended
}

// UnwokenAfter is how long mail must be unread before it is reported.
const UnwokenAfter = 10 * time.Minute

// Why returns the reason why the agent cannot be woken.
func (u *Unwoken) Why() string {
	switch {
	case u.Never:
		return "it never had a session in a client configured by mailtree setup, and has no tmux window"
	case u.Ended:
		return "all of its sessions have ended"
	}
	return "none of its sessions could be reached"
}

// String returns a sentence with the agent's name and the reason.
func (u *Unwoken) String() string {
	return fmt.Sprintf("%s has had unread mail for %s and cannot be woken: %s.", u.Agent, format.TimeLeft(u.Age), u.Why())
}

// Unwoken lists the agents that cannot be woken and whose mail has been unread for UnwokenAfter, sorted by name.
func (ss *Sessions) Unwoken(ctx context.Context) (all []Unwoken, err error) {
	rows, err := ss.mail.Store.Index.Agents(ctx, ss.mail.Slug)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		if rows[i].Unread == 0 {
			continue
		}
		u, err := ss.AgentUnwoken(ctx, rows[i].Name)
		if err != nil {
			return nil, err
		}
		if u != nil {
			all = append(all, *u)
		}
	}
	return all, nil
}

// AgentUnwoken is like Unwoken, but for one agent. It returns nil if Unwoken would not list the agent.
func (ss *Sessions) AgentUnwoken(ctx context.Context, agent string) (*Unwoken, error) {
	now := ss.mail.Store.Now()
	live, ended := ss.mail.Seats.Sessions(agent)
	u := &Unwoken{Agent: agent, Never: len(live)+len(ended) == 0, Ended: len(live) == 0}
	if u.Never {
		if looks, err := ss.looksItself(ctx, agent); err != nil || looks {
			return nil, err
		}
	}
	for _, s := range live {
		if !s.Idle(now) || ss.waiters.awaited(s.Key) || s.Wake.Succeeded() {
			return nil, nil
		}
	}
	mail, err := ss.unreadOf(ctx, agent)
	if n := len(mail.newest); err == nil && n > 0 && now.Sub(mail.newest[n-1].Created) >= UnwokenAfter {
		u.Unread, u.Since = n, mail.newest[n-1].Created
		u.Age = now.Sub(u.Since)
		return u, nil
	}
	return nil, err
}

// looksItself reports whether an agent that never had a session on this machine does not need to be woken. It returns
// true for a user's agent, an agent of another machine, and an agent that was active within UnwokenAfter or has a tmux
// window. It also returns true for a mailbox and for an agent of a toolset that polls, because no client with hooks
// runs them.
func (ss *Sessions) looksItself(ctx context.Context, agent string) (bool, error) {
	row, err := ss.mail.Store.Index.Agent(ctx, ss.mail.Slug, agent)
	if err != nil || row == nil {
		return true, err
	}
	ss.mail.AddSeen(row)
	return row.Program == core.PersonProgram || ss.mail.Elsewhere(row) || polls(row.Program) || ss.mail.Store.Now().Sub(row.LastActive) < UnwokenAfter || ss.mail.Seats.Window(agent).Pane.Tmux != "", nil
}

// polls reports whether agents of a program check for mail themselves. Mailboxes have no program.
func polls(program string) bool { return slices.Contains([]string{"", "postal", "agentmail"}, program) }
