package maildir

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/seat"
)

// A session of a client is an agent. It begins where the client first says so, or at the first
// event after that; what it was told of its mail is told no second time, until the model's context
// is cut. All of that is run-time state (package seat). See docs/hooks.md.

// SessionKey names a session of a client.
type SessionKey = seat.Key

// SessionState is what a session does.
type SessionState = seat.State

// Visit is what a client says of its session at each event.
type Visit struct {
	SessionKey
	Dir     string       // that the client was started in
	Model   string       // "" where the client does not say
	Agent   string       // who the session is to be, where somebody has decided that; "": see BeginSession
	Pane    Pane         // that the client runs in; zero outside of tmux
	Process seat.Process // the client's
}

// BeginSession makes a session an agent, where it is none or has ended, or its agent is gone, and
// returns the agent. That is v.Agent, which is made where there is none of that name; else the one
// that the session was before; else that of the last ended session of the same client and folder;
// else a new one. Of those two no other session that lives is the agent. It is ready then. Errors:
// ErrInvalid; those of EnsureAgent and Register.
func (p *Project) BeginSession(ctx context.Context, v Visit) (agent string, err error) {
	p.binding.Lock() // or two that begin at once would take one name
	defer p.binding.Unlock()
	if s, ok := p.seats.Continue(v.SessionKey, v.Pane, v.Process); ok {
		is, err := p.hasAgent(ctx, s.Agent) // a person may have removed it
		if err != nil || is && (v.Agent == "" || v.Agent == s.Agent) {
			return s.Agent, err
		}
	}
	name, err := p.agentOf(ctx, v)
	if err != nil {
		return "", err
	}
	gone := p.seats.Begin(seat.Seat{
		Key:     v.SessionKey,
		Agent:   name,
		Dir:     v.Dir,
		Pane:    v.Pane,
		Process: v.Process,
	})
	p.leaveAll(ctx, gone)
	return name, p.SetPresence(ctx, name, format.Ready)
}

func (p *Project) agentOf(ctx context.Context, v Visit) (string, error) {
	as := Registration{Program: v.Client, Model: v.Model}
	if v.Agent != "" {
		return v.Agent, cmp.Or(p.EnsureAgent(ctx, v.Agent, as), p.needOurs(ctx, v.Agent))
	}
	for _, name := range p.seats.Names(v.SessionKey, v.Dir) {
		switch ok, err := p.hasAgent(ctx, name); {
		case err != nil:
			return "", err
		case ok && p.needOurs(ctx, name) == nil:
			return name, nil
		}
	}
	made, err := p.Register(ctx, as)
	if err != nil {
		return "", err
	}
	return made.Name, nil
}

// EndSession ends a session. Its agent is offline, unless another session is that agent too.
func (p *Project) EndSession(ctx context.Context, k SessionKey) {
	if agent, ended := p.seats.End(k); ended { // Gemini CLI says it three times
		p.leave(ctx, agent)
		p.store.feed.ringAgent(p.Slug, agent) // whoever waits to wake it ends
	}
}

// goneLook is how often the store looks for clients that have gone without a word.
const goneLook = time.Minute

// endGone ends the sessions of clients that went without saying so, until ctx ends.
func (s *Store) endGone(ctx context.Context) {
	look := time.NewTicker(s.cfg.GoneLook)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		for _, p := range s.Projects() {
			p.endGoneSessions(ctx)
		}
	}
}

func (p *Project) endGoneSessions(ctx context.Context) {
	p.binding.Lock() // or an agent could leave that a session is just becoming
	defer p.binding.Unlock()
	p.leaveAll(ctx, p.seats.EndGone())
}

// leaveAll is leave for the agents of sessions that have ended.
func (p *Project) leaveAll(ctx context.Context, ended []seat.Seat) {
	for _, s := range ended {
		p.leave(ctx, s.Agent)
	}
}

// leave sets an agent offline that is no session any more.
func (p *Project) leave(ctx context.Context, agent string) {
	if live, _ := p.seats.Sessions(agent); len(live) > 0 {
		return
	}
	if err := p.SetPresence(ctx, agent, format.Offline); err != nil {
		p.store.cfg.Log.Warn("presence not set", "project", p.Slug, "agent", agent, "error", err)
	}
}

// SessionCut notes that a session's model has lost its context, or begins one: it is told anew who
// it is, and of what is unread.
func (p *Project) SessionCut(k SessionKey) {
	p.seats.Change(k, func(s *seat.Seat) {
		s.Cut(p.store.cfg.Now())
		s.Introduced = false
	})
}

// SessionWorks notes whether a turn is under way in a session, or it waits for a prompt.
func (p *Project) SessionWorks(k SessionKey, working bool) {
	if s, ok := p.seats.Change(k, func(s *seat.Seat) { s.Work(working, p.store.cfg.Now()) }); ok && !working {
		p.turnEnded(s.Agent)
	}
}

// SessionPrompted records that a prompt has begun a turn, and returns the number of the turn; 0 if the session is
// unknown.
func (p *Project) SessionPrompted(k SessionKey) (turn int) {
	s, _ := p.seats.Change(k, func(s *seat.Seat) {
		s.Turn++
		s.Work(true, p.store.cfg.Now())
	})
	return s.Turn
}

// SessionIs records what a session does, as the client's own files say. turn is the turn of which they say it; 0 means
// the present one. It changes nothing if that turn is over, or if the session is unknown or has ended.
func (p *Project) SessionIs(k SessionKey, turn int, is SessionState) {
	s, ok := p.seats.Change(k, func(s *seat.Seat) {
		if turn == 0 || turn == s.Turn {
			s.Be(is, p.store.cfg.Now())
		}
	})
	if ok && !s.Working {
		p.turnEnded(s.Agent)
	}
}

// turnEnded wakes callers that wait until an agent's session is idle.
func (p *Project) turnEnded(agent string) {
	p.store.feed.ringAgent(p.Slug, agent)
	p.store.feed.ringIdle()
}

// SessionTool records that a tool has run in a session. It reports false, and changes nothing, if the tool
// belongs to a turn that has ended.
func (p *Project) SessionTool(k SessionKey) (works bool) {
	p.seats.Change(k, func(s *seat.Seat) {
		now := p.store.cfg.Now()
		if works = !s.Late(now); works {
			s.Work(true, now)
		}
	})
	return works
}

// SessionAsks notes whether a session stands at a question: its client asks a person whether a tool may
// run.
func (p *Project) SessionAsks(k SessionKey, asks bool) {
	p.seats.Change(k, func(s *seat.Seat) { s.Asks = asks })
}

// Asks reports whether a session of the agent stands at a question, which a person has to answer.
func (p *Project) Asks(agent string) bool {
	live, _ := p.seats.Sessions(agent)
	return slices.ContainsFunc(live, func(s seat.Seat) bool { return s.Asks })
}

// IntroduceSession reports whether a session's model is to be told who it is, and notes that it is
// told.
func (p *Project) IntroduceSession(k SessionKey) (first bool) {
	p.seats.Change(k, func(s *seat.Seat) { first, s.Introduced = !s.Introduced, true })
	return first
}

// TellSession returns the unread mail of a session's agent that its model was not told of, and notes
// that it is told now.
func (p *Project) TellSession(ctx context.Context, k SessionKey) (n seat.News, err error) {
	s, ok := p.seats.Of(k)
	if !ok {
		return n, nil
	}
	p.noteSeen(ctx, s.Agent)
	mail, err := p.unreadOf(ctx, s.Agent)
	if err != nil || len(mail.newest) == 0 {
		return n, err
	}
	if n.Volley, err = p.volley(ctx, s.Agent, s.Untold(mail.newest)); err != nil {
		return n, err
	}
	fresh, older, _ := p.seats.Tell(&s, mail.newest, mail.more())
	n.Unread, n.New, n.Named = mail.all, len(fresh), fresh[:min(len(fresh), seat.MostNamed)]
	if older {
		n.New += mail.all - len(mail.newest)
	}
	return n, nil
}

// Session returns what is known of a session; ok is false where that is nothing.
func (p *Project) Session(k SessionKey) (s seat.Seat, ok bool) { return p.seats.Of(k) }
