package wake

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"mailtree/maildir/agents"
	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/seat"
)

// Sessions are the sessions of clients that work in a project, and the tmux windows of agents without one. It is safe for
// concurrent use.
type Sessions struct {
	mail    *core.Mail
	agents  *agents.Agents
	windows *Windows

	binding sync.Mutex // held while a session gets its agent
	waiters waiters
}

// Windows are the tmux windows of a store, which its projects share. The zero value is ready to use.
type Windows struct {
	typing  atomic.Int32 // callers of Types
	seating sync.Mutex   // held while an agent takes its seat
}

// Types records that notices are typed into tmux windows, until done.
func (w *Windows) Types() (done func()) {
	w.typing.Add(1)
	return func() { w.typing.Add(-1) }
}

func (w *Windows) typed() bool { return w.typing.Load() > 0 }

// New returns the sessions of a project.
func New(mail *core.Mail, agents *agents.Agents, windows *Windows) *Sessions {
	return &Sessions{mail: mail, agents: agents, windows: windows}
}

// SessionKey names a session of a client.
type SessionKey = seat.Key

// SessionState is what a session does.
type SessionState = seat.State

// SessionEvent is what a client says of its session at each event.
type SessionEvent struct {
	SessionKey
	Dir     string       // that the client was started in
	Model   string       // "" where the client does not say
	Agent   string       // who the session is to be, where somebody has decided that; "": see Begin
	Pane    Pane         // that the client runs in; zero outside of tmux
	Process seat.Process // the client's
}

// Begin binds a session to an agent, sets it ready and returns its name: v.Agent, created if it is missing; otherwise
// the session's earlier agent; otherwise the agent of the last ended session of that client and folder; otherwise a new
// one. The last three are never the agent of another live session. It returns the errors of EnsureAgent and Register.
func (ss *Sessions) Begin(ctx context.Context, v SessionEvent) (agent string, err error) {
	ss.binding.Lock() // or two that begin at once would take one name
	defer ss.binding.Unlock()
	if s, ok := ss.mail.Seats.Continue(v.SessionKey, v.Pane, v.Process); ok {
		is, err := ss.mail.HasAgent(ctx, s.Agent) // a person may have removed it
		if err != nil || is && (v.Agent == "" || v.Agent == s.Agent) {
			return s.Agent, err
		}
	}
	name, err := ss.agentOf(ctx, v)
	if err != nil {
		return "", err
	}
	gone := ss.mail.Seats.Begin(seat.Seat{
		Key:     v.SessionKey,
		Agent:   name,
		Dir:     v.Dir,
		Pane:    v.Pane,
		Process: v.Process,
	})
	ss.leaveAll(ctx, gone)
	return name, ss.agents.SetPresence(ctx, name, format.Ready)
}

func (ss *Sessions) agentOf(ctx context.Context, v SessionEvent) (string, error) {
	as := agents.Registration{Program: v.Client, Model: v.Model}
	if v.Agent != "" {
		return v.Agent, cmp.Or(ss.agents.EnsureAgent(ctx, v.Agent, as), ss.mail.NeedThisMachine(ctx, v.Agent))
	}
	for _, name := range ss.mail.Seats.Names(v.SessionKey, v.Dir) {
		switch ok, err := ss.mail.HasAgent(ctx, name); {
		case err != nil:
			return "", err
		case ok && ss.mail.NeedThisMachine(ctx, name) == nil:
			return name, nil
		}
	}
	made, err := ss.agents.Register(ctx, as)
	if err != nil {
		return "", err
	}
	return made.Name, nil
}

// End ends a session. Its agent is offline, unless another session is that agent too.
func (ss *Sessions) End(ctx context.Context, k SessionKey) {
	if agent, ended := ss.mail.Seats.End(k); ended { // Gemini CLI says it three times
		ss.leave(ctx, agent)
		ss.mail.Store.Feed.RingAgent(ss.mail.Slug, agent) // whoever waits to wake it ends
	}
}

// EndGone ends the sessions of clients that went without saying so.
func (ss *Sessions) EndGone(ctx context.Context) {
	ss.binding.Lock() // or an agent could leave that a session is just becoming
	defer ss.binding.Unlock()
	ss.leaveAll(ctx, ss.mail.Seats.EndGone())
}

// leaveAll is leave for the agents of sessions that have ended.
func (ss *Sessions) leaveAll(ctx context.Context, ended []seat.Seat) {
	for _, s := range ended {
		ss.leave(ctx, s.Agent)
	}
}

// leave sets an agent without a live session offline.
func (ss *Sessions) leave(ctx context.Context, agent string) {
	if live, _ := ss.mail.Seats.Sessions(agent); len(live) > 0 {
		return
	}
	if err := ss.agents.SetPresence(ctx, agent, format.Offline); err != nil {
		ss.mail.Store.Log.Warn("an agent's presence was not recorded", "project", ss.mail.Slug, "agent", agent, "error", err)
	}
}

// ContextCut records that the model's context was reset: it gets its name and the notices about unread mail again.
func (ss *Sessions) ContextCut(k SessionKey) {
	ss.mail.Seats.Change(k, func(s *seat.Seat) {
		s.Cut(ss.mail.Store.Now())
		s.Introduced = false
	})
}

// SetWorking notes whether a turn is under way in a session, or it waits for a prompt.
func (ss *Sessions) SetWorking(k SessionKey, working bool) {
	if s, ok := ss.mail.Seats.Change(k, func(s *seat.Seat) { s.Working = working }); ok && !working {
		ss.turnEnded(s.Agent)
	}
}

// Prompted records that a prompt has begun a turn, and returns the number of the turn; 0 if the session is
// unknown.
func (ss *Sessions) Prompted(k SessionKey) (turn int) {
	s, _ := ss.mail.Seats.Change(k, func(s *seat.Seat) {
		s.Turn++
		s.Working = true
	})
	return s.Turn
}

// SetState records what a session does, as the client's own files say. turn is the turn of which they say it; 0 means
// the present one. It changes nothing if that turn is over, or if the session is unknown or has ended.
func (ss *Sessions) SetState(k SessionKey, turn int, is SessionState) {
	s, ok := ss.mail.Seats.Change(k, func(s *seat.Seat) {
		if turn == 0 || turn == s.Turn {
			s.Be(is)
		}
	})
	if ok && !s.Working {
		ss.turnEnded(s.Agent)
	}
}

// turnEnded wakes callers that wait until an agent's session is idle.
func (ss *Sessions) turnEnded(agent string) {
	ss.mail.Store.Feed.RingAgent(ss.mail.Slug, agent)
	ss.mail.Store.Feed.RingIdle()
}

// SetAsking records whether a session's client waits for the user's permission to run a tool.
func (ss *Sessions) SetAsking(k SessionKey, asks bool) {
	ss.mail.Seats.Change(k, func(s *seat.Seat) { s.Asks = asks })
}

// Asks reports whether a session of the agent waits for the user's permission.
func (ss *Sessions) Asks(agent string) bool {
	live, _ := ss.mail.Seats.Sessions(agent)
	return slices.ContainsFunc(live, func(s seat.Seat) bool { return s.Asks })
}

// Introduce reports whether a session's model is to be told who it is, and notes that it is
// told.
func (ss *Sessions) Introduce(k SessionKey) (first bool) {
	ss.mail.Seats.Change(k, func(s *seat.Seat) { first, s.Introduced = !s.Introduced, true })
	return first
}

// Tell returns the unread mail that a session's model had no notice about, and records the notice.
func (ss *Sessions) Tell(ctx context.Context, k SessionKey) (n seat.News, err error) {
	s, ok := ss.mail.Seats.Of(k)
	if !ok {
		return n, nil
	}
	ss.mail.NoteSeen(ctx, s.Agent)
	mail, err := ss.unreadOf(ctx, s.Agent)
	if err != nil || len(mail.newest) == 0 {
		return n, err
	}
	if n.Volley, err = ss.countVolley(ctx, s.Agent, s.Untold(mail.newest)); err != nil {
		return n, err
	}
	fresh, older, _ := ss.mail.Seats.Tell(&s, mail.newest, mail.more())
	n.Unread, n.New, n.Named = mail.all, len(fresh), fresh[:min(len(fresh), seat.MostNamed)]
	if older {
		n.New += mail.all - len(mail.newest)
	}
	return n, nil
}

// Of returns what is known of a session; ok is false where that is nothing.
func (ss *Sessions) Of(k SessionKey) (s seat.Seat, ok bool) { return ss.mail.Seats.Of(k) }

// Pane is a tmux pane.
type Pane = seat.Pane

// SetSeat records the pane from which an agent calls; the zero Pane means none. A pane belongs to the last agent that
// called from it.
func (ss *Sessions) SetSeat(agent string, at Pane) {
	ss.windows.seating.Lock() // of two who take one pane at once, each would take it from the other
	defer ss.windows.seating.Unlock()
	if !ss.mail.Seats.Sit(agent, at) || at == (Pane{}) {
		return
	}
	for _, other := range ss.mail.Store.Projects.Mails() {
		if other == ss.mail {
			other.Seats.Vacate(at, agent)
		} else {
			other.Seats.Vacate(at, "")
		}
	}
}
