package maildir

import (
	"context"
	"sync"
	"time"

	"mailtree/maildir/index"
	"mailtree/maildir/session"
)

// An idle session is woken for unread mail that its model was not told of, once for the same
// messages. Clients that can be woken wait for that (AwaitNews); others somebody has to wake
// (Sleepers), as long as it has not worked. See docs/hooks.md, "Waking".

// waiters know who waits to wake a session: one for each. Safe for concurrent use.
type waiters struct {
	mu sync.Mutex
	by map[SessionKey]chan struct{}
}

// enter makes the caller the one who waits; replaced is closed when another does.
func (w *waiters) enter(k SessionKey) (replaced chan struct{}, leave func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, ok := w.by[k]; ok {
		close(before)
	}
	if w.by == nil {
		w.by = map[SessionKey]chan struct{}{}
	}
	mine := make(chan struct{})
	w.by[k] = mine
	return mine, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.by[k] == mine {
			delete(w.by, k)
		}
	}
}

func (w *waiters) awaited(k SessionKey) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.by[k]
	return ok
}

// DefaultSettle is how long mail is let come together: whoever waits for it in a long poll has it by
// then, and a burst is one wake.
const DefaultSettle = time.Second

// lookAgain is how often whoever waits looks without a change: a turn may end unnoticed.
const lookAgain = time.Minute

// BeginPatience is how long whoever waits to wake a session lets it begin: a client starts the hook
// that waits beside the one that begins the session, in any order.
const BeginPatience = 2 * time.Second

// lookForBegin is how often whoever waits looks for a session that is still to begin.
const lookForBegin = 50 * time.Millisecond

// AwaitNews waits until an idle session is to be told of unread mail, lets what comes at once
// settle, and returns what its model is told now, as TellSession does. It gives a session that is
// unknown or has ended BeginPatience to begin. over is true where nobody needs to wait any more:
// another waits for the same session, or the session has ended, or the project is gone. Errors:
// ctx's, the index's.
func (p *Project) AwaitNews(ctx context.Context, k SessionKey, settle time.Duration) (n session.News, over bool, err error) {
	replaced, leave := p.waiters.enter(k)
	defer leave()
	begins := time.Now().Add(BeginPatience)
	for settled := false; ; {
		s, _ := p.sessions.Of(k)
		bell := p.store.feed.agent(p.Slug, s.Agent)
		s, ok := p.sessions.Of(k) // after the bell, or a change would be missed
		if !ok || !s.Live(p.store.cfg.Now()) {
			if time.Now().After(begins) {
				return n, true, nil
			}
			if over, err = p.pause(ctx, lookForBegin, nil, replaced); over || err != nil {
				return n, over, err
			}
			continue
		}
		begins = time.Time{} // a session that ends now has ended
		untold, err := p.untold(ctx, &s)
		if err != nil {
			return n, false, err
		}
		due := len(untold) > 0 && s.Idle(p.store.cfg.Now())
		rest, err := p.rest(ctx, s.Agent, untold)
		if err != nil {
			return n, false, err
		}
		if !due || rest > 0 || !settled {
			long, until := lookAgain, bell
			if settled = due && rest == 0; settled {
				long, until = settle, nil
			} else if due {
				long = rest
			}
			if over, err = p.pause(ctx, long, until, replaced); over || err != nil {
				return n, over, err
			}
			continue
		}
		if n, err = p.TellSession(ctx, k); err != nil || n.New > 0 {
			p.NoteWake(k, session.Wake{Outcome: session.Woken, For: untold[0].ID})
			return n, false, err
		}
	}
}

// pause waits for the bell, at most that long. over is true where whoever waits was replaced, or the
// project is gone. Errors: ctx's.
func (p *Project) pause(ctx context.Context, long time.Duration, bell, replaced <-chan struct{}) (over bool, err error) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-bell:
	case <-timer.C:
	case <-replaced:
		return true, nil
	case <-p.life.removed:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	return false, nil
}

// untold lists the unread messages that a session's model was not told of, newest first.
func (p *Project) untold(ctx context.Context, s *session.State) ([]session.Unread, error) {
	unread, err := p.unreadOf(ctx, s.Agent)
	return s.Untold(unread), err
}

// unreadOf lists the newest unread messages of an agent, newest first.
func (p *Project) unreadOf(ctx context.Context, agent string) (unread []session.Unread, err error) {
	row, err := p.store.index.Agent(ctx, p.Slug, agent)
	if err != nil || row == nil || row.Unread == 0 {
		return nil, err
	}
	page, err := p.page(ctx, index.InboxQuery{Project: p.Slug, Agent: agent, UnreadOnly: true, Limit: session.Most})
	if err != nil {
		return nil, err
	}
	for _, d := range page.Messages {
		unread = append(unread, unreadFrom(&d))
	}
	return unread, nil
}

func unreadFrom(d *index.Delivery) session.Unread {
	return session.Unread{ID: d.ID, From: d.From, Thread: d.ThreadID, Created: d.Created}
}

// Sleeper is a session that somebody has to wake as soon as it is idle: nobody waits for it.
type Sleeper struct {
	session.State
	New    int    // unread messages that its model was not told of
	Newest string // the newest of them
	Works  bool   // it is not idle: its client's hook tells it
	Rests  bool   // the wake waits: see mostVolley
}

// Sleepers lists the sessions of an agent that have to be woken and were not, for the same messages.
func (p *Project) Sleepers(ctx context.Context, agent string) ([]Sleeper, error) {
	const again = false
	return p.sleepers(ctx, agent, again)
}

// SleepersAgain is Sleepers with those that were woken for the same messages, or were told of all
// that is unread.
func (p *Project) SleepersAgain(ctx context.Context, agent string) ([]Sleeper, error) {
	const again = true
	return p.sleepers(ctx, agent, again)
}

func (p *Project) sleepers(ctx context.Context, agent string, again bool) (all []Sleeper, err error) {
	now := p.store.cfg.Now()
	unread, err := p.unreadOf(ctx, agent)
	if err != nil || len(unread) == 0 {
		return nil, err
	}
	for _, s := range p.sessions.Live() {
		if s.Agent != agent || p.waiters.awaited(s.Key) {
			continue
		}
		due := unread
		if !again {
			due = s.Untold(unread)
		}
		if len(due) > 0 && (again || !woke(&s) || s.Wake.For != due[0].ID) {
			rest, err := p.rest(ctx, agent, due)
			if err != nil {
				return nil, err
			}
			all = append(all, Sleeper{
				State:  s,
				New:    len(due),
				Newest: due[0].ID,
				Works:  !s.Idle(now),
				Rests:  rest > 0 && !again,
			})
		}
	}
	return all, nil
}

// Reach is how a session of an agent can be woken, and how that went last.
type Reach struct {
	Client string
	Ended  bool
	Waits  bool         // its client waits for mail
	Way    string       // else; as of session.State
	Wake   session.Wake // the last; zero: none was needed
}

// Reaches lists the sessions of agents by their names, of each agent those that go on, else the last
// one. Agents that were never a session are not among them.
func (p *Project) Reaches() map[string][]Reach {
	all, last := map[string][]Reach{}, map[string]session.State{}
	reach := func(s *session.State, ended bool) Reach {
		return Reach{
			Client: s.Client,
			Ended:  ended,
			Waits:  p.waiters.awaited(s.Key),
			Way:    s.Way(),
			Wake:   s.Wake,
		}
	}
	for _, s := range p.sessions.Live() {
		const ended = false
		all[s.Agent] = append(all[s.Agent], reach(&s, ended))
	}
	for _, s := range p.sessions.All() {
		if old, ok := last[s.Agent]; !ok || old.Active.Before(s.Active) {
			last[s.Agent] = s
		}
	}
	for agent, s := range last {
		if all[agent] == nil {
			const ended = true
			all[agent] = []Reach{reach(&s, ended)}
		}
	}
	return all
}

// woke reports whether the session was woken last time.
func woke(s *session.State) bool { return s.Wake.Outcome != "" && s.Wake.Outcome != session.Nobody }

// NoteWake notes how a session was to be woken now.
func (p *Project) NoteWake(k SessionKey, w session.Wake) {
	w.At = p.store.cfg.Now()
	p.sessions.NoteWake(k, w)
}

// HasSession reports whether an agent is a session that goes on.
func (p *Project) HasSession(agent string) bool {
	for _, s := range p.sessions.Live() {
		if s.Agent == agent {
			return true
		}
	}
	return false
}
