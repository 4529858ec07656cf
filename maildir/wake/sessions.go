package wake

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mailtree/maildir/agents"
	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/seat"
)

// Sessions manages the client sessions that are working in a project, and the tmux windows of agents without a session.
// It is safe for concurrent use.
type Sessions struct {
	mail    *core.Mail
	agents  *agents.Agents
	windows *Windows

	binding sync.Mutex // held while a session is bound to its agent
	waiters waiters
}

// Windows represents a store's tmux windows, which the store's projects share. The zero value is ready to use.
type Windows struct {
	typing  atomic.Int32 // number of callers of Types that have not called done
	seating sync.Mutex   // held by SetSeat
}

// Types records that this process types notices into tmux windows. The record lasts until the caller calls done.
func (w *Windows) Types() (done func()) {
	w.typing.Add(1)
	return func() { w.typing.Add(-1) }
}

func (w *Windows) typed() bool { return w.typing.Load() > 0 }

// New returns the Sessions of a project.
func New(mail *core.Mail, agents *agents.Agents, windows *Windows) *Sessions {
	return &Sessions{mail: mail, agents: agents, windows: windows}
}

// SessionKey identifies a client session.
type SessionKey = seat.Key

// SessionState is what a session is currently doing.
type SessionState = seat.State

// SessionEvent contains what a client reports about its session with each event.
type SessionEvent struct {
	SessionKey
	Dir     string       // the folder in which the client was started
	Model   string       // empty if the client does not report it
	Agent   string       // the session's agent if it is already known; otherwise "" (see Begin)
	Pane    Pane         // the pane in which the client is running; zero outside tmux
	Process seat.Process // the client's process
}

// Begin binds a session to an agent, sets the agent's status to ready, and returns the agent's name. The agent is
// v.Agent (see core.Mail.AgentNamed), which is created if it does not exist. If v.Agent is "", Begin uses the session's
// earlier agent if it is available. Its second choice is the agent of the most recently ended session with the same
// client and folder, and its last choice is a new agent. Only v.Agent may also be the agent of another live session.
// Begin returns any error from EnsureAgent or Register.
func (ss *Sessions) Begin(ctx context.Context, v SessionEvent) (agent string, err error) {
	ss.binding.Lock() // two sessions that begin at the same time must not get the same name
	defer ss.binding.Unlock()
	if v.Agent != "" {
		if v.Agent, err = ss.mail.AgentNamed(ctx, v.Agent); err != nil {
			return "", err
		}
	}
	if s, ok := ss.mail.Seats.Continue(v.SessionKey, v.Pane, v.Process); ok {
		is, err := ss.mail.HasAgent(ctx, s.Agent) // the user may have removed the agent
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

// End ends a session. Its agent goes offline unless another live session belongs to the same agent.
func (ss *Sessions) End(ctx context.Context, k SessionKey) {
	if agent, ended := ss.mail.Seats.End(k); ended { // Gemini CLI reports an end three times; only the first counts
		ss.leave(ctx, agent)
		ss.mail.Store.Feed.RingAgent(ss.mail.Slug, agent) // stops the caller that is waiting to wake the session
	}
}

// EndGone ends the sessions of clients that have ended without reporting it.
func (ss *Sessions) EndGone(ctx context.Context) {
	ss.binding.Lock() // so that no agent goes offline while a session is being bound to it
	defer ss.binding.Unlock()
	ss.leaveAll(ctx, ss.mail.Seats.EndGone())
}

// leaveAll calls leave for the agents of sessions that have ended.
func (ss *Sessions) leaveAll(ctx context.Context, ended []seat.Seat) {
	for _, s := range ended {
		ss.leave(ctx, s.Agent)
	}
}

// leave sets an agent's status to offline if the agent has no live session.
func (ss *Sessions) leave(ctx context.Context, agent string) {
	if live, _ := ss.mail.Seats.Sessions(agent); len(live) > 0 {
		return
	}
	if err := ss.agents.SetPresence(ctx, agent, format.Offline); err != nil {
		ss.mail.Store.Log.Warn("failed to record an agent's presence", "project", ss.mail.Slug, "agent", agent, "error", err)
	}
}

// ContextCut records that the model's context was reset. The model is then told its agent's name again, and gets the
// notices about unread mail again.
func (ss *Sessions) ContextCut(k SessionKey) {
	ss.mail.Seats.Change(k, func(s *seat.Seat) {
		s.Cut(ss.mail.Store.Now())
		s.Introduced = false
	})
}

// SetWorking records whether a session is working on a turn or waiting for a prompt.
func (ss *Sessions) SetWorking(k SessionKey, working bool) {
	if s, ok := ss.mail.Seats.Change(k, func(s *seat.Seat) { s.Working = working }); ok && !working {
		ss.turnEnded(s.Agent)
	}
}

// Prompted records that a prompt has started a turn. It returns the turn's number, or 0 if the session is unknown.
func (ss *Sessions) Prompted(k SessionKey) (turn int) {
	s, _ := ss.mail.Seats.Change(k, func(s *seat.Seat) {
		s.Turn++
		s.Working = true
	})
	return s.Turn
}

// SetState records a session's state according to the client's own files. turn is the turn that the files refer to,
// where 0 means the current turn. SetState changes nothing if that turn is over, or if the session is unknown or has
// ended.
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

// turnEnded wakes callers that are waiting for an agent's session to become idle.
func (ss *Sessions) turnEnded(agent string) {
	ss.mail.Store.Feed.RingAgent(ss.mail.Slug, agent)
	ss.mail.Store.Feed.RingIdle()
}

// SetAsking records whether a session's client is waiting for the user's permission to run a tool. tool is, for
// example, "Bash: make test", or "" if the client does not name it. If anything changes, SetAsking wakes
// the callers that are waiting for changes in the project.
func (ss *Sessions) SetAsking(k SessionKey, asks bool, tool string) {
	news := false
	ss.mail.Seats.Change(k, func(s *seat.Seat) {
		news = s.Asks != asks || s.Tool != tool
		s.Asks, s.Tool = asks, tool
	})
	if news {
		ss.mail.Store.Feed.RingAgent(ss.mail.Slug, core.AnyAgent)
	}
}

// Status returns an agent's status. If the agent has reported that it is ready, but one of its sessions is working on a
// turn, the status is work.
func (ss *Sessions) Status(a *index.AgentRow) string {
	if a.Status != format.Ready {
		return a.Status
	}
	live, _ := ss.mail.Seats.Sessions(a.Name)
	if slices.ContainsFunc(live, func(s seat.Seat) bool { return !s.Idle(ss.mail.Store.Now()) }) {
		return format.Work
	}
	return a.Status
}

// Asks reports whether one of the agent's sessions is waiting for the user's permission.
func (ss *Sessions) Asks(agent string) bool {
	live, _ := ss.mail.Seats.Sessions(agent)
	return slices.ContainsFunc(live, func(s seat.Seat) bool { return s.Asks })
}

// Prompt is a permission prompt: an agent's client asks the user whether a tool may run.
type Prompt struct {
	Project string `json:"project,omitempty"` // slug; set only in a list of all projects

	Agent  string    `json:"agent"`
	Client string    `json:"client"`
	Tool   string    `json:"tool,omitempty"` // such as "Bash: make test"; empty if the client does not name it
	Dir    string    `json:"dir"`            // the folder in which the client was started
	Pane   seat.Pane `json:"pane,omitzero"`  // the client's tmux pane, if it runs in one
	Since  time.Time `json:"since"`          // when the client last reported an event; accurate to the minute
}

// Prompts lists the permission prompts of the project's sessions, oldest first.
func (ss *Sessions) Prompts() []Prompt {
	live, _ := ss.mail.Seats.All()
	all := []Prompt{}
	for _, s := range live {
		if s.Asks {
			all = append(all, Prompt{Agent: s.Agent, Client: s.Client, Tool: s.Tool, Dir: s.Dir, Pane: s.Pane, Since: s.Active})
		}
	}
	slices.SortStableFunc(all, func(a, b Prompt) int { return a.Since.Compare(b.Since) })
	return all
}

// Introduce reports whether a session's model still needs to be told its agent's name, and records that it has been
// told.
func (ss *Sessions) Introduce(k SessionKey) (first bool) {
	ss.mail.Seats.Change(k, func(s *seat.Seat) { first, s.Introduced = !s.Introduced, true })
	return first
}

// Tell returns the unread mail that has not been announced to a session's model, and records the notice.
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

// Of returns a session's recorded state. ok is false if the session is unknown.
func (ss *Sessions) Of(k SessionKey) (s seat.Seat, ok bool) { return ss.mail.Seats.Of(k) }

// Pane is a tmux pane.
type Pane = seat.Pane

// SetSeat records the pane from which an agent calls the server. The zero Pane means no pane. A pane belongs to the
// agent that last called from it.
func (ss *Sessions) SetSeat(agent string, at Pane) {
	ss.windows.seating.Lock() // otherwise two agents in the same pane could each remove the other's record
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
