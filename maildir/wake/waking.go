package wake

import (
	"context"
	"slices"
	"sync"
	"time"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/seat"
)

// waiters records, for each session, the caller that is waiting to wake it. A session has at most one such caller.
// waiters is safe for concurrent use.
type waiters struct {
	mu sync.Mutex
	by map[SessionKey]chan struct{}
}

// enter registers the caller that is waiting to wake the session. The channel replaced is closed when another caller
// enters. leave ends the registration.
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

// DefaultSettle is the delay before a wake. Because of the delay, a burst of mail causes only one wake, and long polls
// are answered first.
const DefaultSettle = time.Second

// lookAgain is the time between checks while nothing changes. The checks are needed because a turn may end without a
// report.
const lookAgain = time.Minute

// BeginPatience is how long AwaitNews waits for a session to begin, because a client may start the waiting hook before
// the hook that begins the session.
const BeginPatience = 2 * time.Second

// lookForBegin is the time between checks of whether a session has begun.
const lookForBegin = 50 * time.Millisecond

// AwaitNews waits until an idle session has new unread mail, waits for the duration settle, and returns the result of
// Tell. If the session is unknown or has ended, AwaitNews waits BeginPatience for it to begin. If over is true, the
// caller must stop: another caller is now waiting for the session, the session has ended, or the project was removed.
// AwaitNews returns errors from ctx and the index.
func (ss *Sessions) AwaitNews(ctx context.Context, k SessionKey, settle time.Duration) (n seat.News, over bool, err error) {
	replaced, leave := ss.waiters.enter(k)
	defer leave()
	begins := time.Now().Add(BeginPatience)
	for settled := false; ; {
		s, _ := ss.mail.Seats.Of(k)
		bell := ss.mail.Store.Feed.Agent(ss.mail.Slug, s.Agent)
		s, ok := ss.mail.Seats.Of(k) // read it again, now that bell reports changes
		if !ok || !s.Live(ss.mail.Store.Now()) {
			if time.Now().After(begins) {
				return n, true, nil
			}
			if over, err = ss.awaitTurn(ctx, lookForBegin, nil, replaced); over || err != nil {
				return n, over, err
			}
			continue
		}
		begins = time.Time{} // do not wait a second time for the session to begin
		one, err := ss.sleeper(ctx, s, false)
		if err != nil {
			return n, false, err
		}
		long, until := lookAgain, bell
		switch {
		case one.New == 0 || one.Works:
		case one.Rest > 0:
			long = one.Rest
		case !settled:
			long, until = settle, nil
		default:
			if n, err = ss.Tell(ctx, k); err != nil {
				return n, false, err
			}
			if n.New > 0 {
				ss.NoteWake(k, seat.Wake{Outcome: seat.Woken, For: one.Newest})
				return n, false, nil
			}
		}
		settled = until == nil
		if over, err = ss.awaitTurn(ctx, long, until, replaced); over || err != nil {
			return n, over, err
		}
	}
}

// awaitTurn waits until bell is closed, but no longer than the duration long. If another caller has replaced this one,
// or if the project was removed, over is true. If ctx ends, awaitTurn returns its cause.
func (ss *Sessions) awaitTurn(ctx context.Context, long time.Duration, bell, replaced <-chan struct{}) (over bool, err error) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-bell:
	case <-timer.C:
	case <-replaced:
		return true, nil
	case <-ss.mail.Gone():
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	return false, nil
}

// unreadMail is an agent's unread mail.
type unreadMail struct {
	agent  *index.AgentRow // the agent; nil if it does not exist
	newest []seat.Unread   // up to seat.Most messages, newest first
	all    int
}

func (m *unreadMail) more() bool { return m.all > len(m.newest) }

// unreadOf reads an agent's unread mail. It omits mail from senders at other domains that the agent does not trust,
// because such mail does not wake an agent.
func (ss *Sessions) unreadOf(ctx context.Context, agent string) (m unreadMail, err error) {
	if m.agent, err = ss.mail.Store.Index.Agent(ctx, ss.mail.Slug, agent); err != nil || m.agent == nil || m.agent.Unread == 0 {
		return m, err
	}
	q := index.InboxQuery{Project: ss.mail.Slug, Agent: agent, UnreadOnly: true, Quiet: true, Limit: seat.Most + 1}
	if q.Trusted, err = ss.mail.Store.Trusted.Of(ss.mail.Slug, agent); err != nil {
		// Without a list in q.Trusted, the query finds no mail from other domains.
		ss.mail.Store.Log.Warn("cannot read the trusted senders; mail from other domains does not wake agents", "error", err)
	}
	rows, counts, err := ss.mail.Store.Index.Inbox(ctx, q)
	if err != nil {
		return m, err
	}
	more := len(rows) > seat.Most
	for i := range rows[:min(len(rows), seat.Most)] {
		d := &rows[i]
		if d.Door == format.DoorGateway && ss.mail.Trust(&d.Message, agent) != core.Trusted {
			continue
		}
		m.newest = append(m.newest, seat.Unread{ID: d.ID, From: d.From, Subject: d.Subject, Thread: d.ThreadID, Created: d.Created})
	}
	if m.all = len(m.newest); more {
		m.all = counts.Unread
	}
	return m, nil
}

// IdleSeat is a seat that the server must wake when it is idle, because no client is waiting to do so.
type IdleSeat struct {
	seat.Seat
	Program string        // from the profile, or "agentmail" if the agent has a pane (only that toolset records panes)
	New     int           // number of unread messages that were not announced
	Newest  string        // id of the newest message that was not announced
	Works   bool          // a turn is in progress, so the client's hook will deliver the notice
	Rest    time.Duration // how much longer the wake must wait; see mostVolley

	mail unreadMail
}

// IdleQuery selects an agent's seats that the server must wake.
type IdleQuery struct {
	Agent   string
	Windows bool // wake ready agents without a session in their windows
	Again   bool // wake again for messages that were already announced
}

// IdleSeats lists the agent's sessions that have mail newer than their last wake. If the agent has no session,
// IdleSeats considers the agent's window instead.
func (ss *Sessions) IdleSeats(ctx context.Context, q IdleQuery) (all []IdleSeat, err error) {
	seats, _ := ss.mail.Seats.Sessions(q.Agent)
	if len(seats) == 0 && q.Windows {
		seats = []seat.Seat{ss.mail.Seats.Window(q.Agent)}
	}
	for _, s := range seats {
		if ss.waiters.awaited(s.Key) {
			continue
		}
		one, err := ss.sleeper(ctx, s, q.Again)
		if err != nil {
			return nil, err
		}
		if one.New > 0 && (q.Again || !s.Wake.Succeeded() || s.Wake.For != one.Newest) {
			all = append(all, one)
		}
	}
	return all, nil
}

// sleeper returns the seat with the unread mail that has not been announced to its agent. If again is set, it returns
// the seat with all unread mail. New is 0 if there is no such mail.
func (ss *Sessions) sleeper(ctx context.Context, s seat.Seat, again bool) (one IdleSeat, err error) {
	one = IdleSeat{Seat: s, Works: !s.Idle(ss.mail.Store.Now())}
	if one.mail, err = ss.unreadOf(ctx, s.Agent); err != nil || len(one.mail.newest) == 0 {
		return one, err
	}
	agent, due := one.mail.agent, one.mail.newest
	if !again {
		due = s.Untold(due)
	}
	if len(due) == 0 || s.IsWindow() && agent.Status != format.Ready {
		return one, nil
	}
	one.New, one.Newest, one.Program = len(due), due[0].ID, agent.Program
	if ss.mail.Seats.Window(s.Agent).Pane != (Pane{}) {
		one.Program = "agentmail"
	}
	if !again && !s.IsWindow() {
		one.Rest, err = ss.rest(ctx, s.Agent, due)
	}
	return one, err
}

// Recheck reloads s just before the server types into its window, and reports whether s still needs to be woken. For an
// agent without a session, Recheck records the notice before the notice is typed. A lost notice is repeated with the
// next message, but a duplicate cannot be undone.
func (ss *Sessions) Recheck(ctx context.Context, q IdleQuery, s *IdleSeat) (still bool, err error) {
	all, err := ss.IdleSeats(ctx, q)
	i := slices.IndexFunc(all, func(now IdleSeat) bool { return now.Key == s.Key })
	if i < 0 {
		return false, err
	}
	if *s = all[i]; s.IsWindow() {
		_, _, ok := ss.mail.Seats.Tell(&s.Seat, s.mail.newest, s.mail.more())
		return ok, nil
	}
	return true, nil
}

// NoteWake records that an attempt to wake a seat's agent has just been made.
func (ss *Sessions) NoteWake(k SessionKey, w seat.Wake) { ss.mail.Seats.NoteWake(k, w) }

// WakeStatus describes how an agent's session can be woken, and how the last attempt ended.
type WakeStatus struct {
	Client string
	Ended  bool
	Waits  bool      // the session's client is waiting for mail
	Way    string    // how to wake the session if its client is not waiting; see seat.Seat.Way
	Wake   seat.Wake // the last attempt; zero if none was needed
}

// WakeStatuses returns each agent's live sessions, or its last session if none is live. It omits agents that never had
// a session.
func (ss *Sessions) WakeStatuses() map[string][]WakeStatus {
	all := map[string][]WakeStatus{}
	live, ended := ss.mail.Seats.All()
	for i, s := range append(live, ended...) {
		over := i >= len(live)
		if over && all[s.Agent] != nil {
			continue
		}
		all[s.Agent] = append(all[s.Agent], WakeStatus{
			Client: s.Client,
			Ended:  over,
			Waits:  ss.waiters.awaited(s.Key),
			Way:    s.Way(),
			Wake:   s.Wake,
		})
	}
	return all
}
