// Package wake wakes idle agents that have mail. It is needed because MCP cannot start a turn for an idle agent. One
// loop (this file) checks every agent whose mail or status has changed, and wakes the agent at its seats (seat.go). A
// seat is a session of a client with hooks or, for an agent that has no session and whose status is ready, the agent's
// tmux window. A session is woken through the client's queue (codex.go) or in tmux. Clients that wait for mail
// themselves are not woken here (maildir.AwaitNews).
//
// The notice does not contain any text from a sender, because the model would mistake text in a prompt for the user's
// words. Waking an agent does not mark anything as read. If an agent cannot be woken, the server retries at increasing
// intervals. See docs/reference/hooks.md, "Waking", and docs/reference/agentmail.md, "Waking an agent in tmux".
package wake

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/seat"
)

// Text returns the notice for an agent that reads its mail with the given tool. If the notice is typed into a shell by
// mistake, the shell reports an unknown command, which does no harm.
func Text(tool string) string { return "You have new mail. Read it with " + tool + "." }

// Defaults for Config.
const (
	DefaultPause = 200 * time.Millisecond // Codex treats an Enter within 120 ms as part of a paste
	DefaultRetry = 2 * time.Second
)

// retryMost is the maximum time between two attempts to wake an agent.
const retryMost = 2 * time.Minute

// Config configures a Waker. Store is required.
type Config struct {
	Store  *maildir.Store
	Log    *slog.Logger  // if nil, log lines are discarded
	Settle time.Duration // how long to wait after a change before a pass; 0 means maildir.DefaultSettle
	Pause  time.Duration // pause between typing the text and pressing Enter; 0 means DefaultPause
	Retry  time.Duration // time until the first retry, doubled for each further retry; 0 means DefaultRetry
}

// Waker wakes agents that have mail. It is safe for concurrent use. Even if several passes run at the same time, each
// message is announced only once.
type Waker struct {
	cfg Config
	mu  sync.Mutex // held while an agent is checked and woken
}

// New returns a Waker. It does not start anything.
func New(cfg Config) *Waker {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Settle = cmp.Or(cfg.Settle, maildir.DefaultSettle)
	cfg.Pause = cmp.Or(cfg.Pause, DefaultPause)
	cfg.Retry = cmp.Or(cfg.Retry, DefaultRetry)
	return &Waker{cfg: cfg}
}

// By describes the caller on whose behalf agents are woken, and the permitted ways to wake them.
type By struct {
	Tmux  string // the caller's $TMUX; "" outside tmux
	Types bool   // whether Waker may type the notice into tmux windows
	Again bool   // wake agents even if they have already been woken for the same messages
}

func (by By) query(agent string) maildir.IdleQuery {
	return maildir.IdleQuery{Agent: agent, Windows: by.Types, Again: by.Again}
}

// Outcome is the result of waking one agent.
type Outcome struct {
	Project string `json:"project"` // slug
	Agent   string `json:"agent"`
	New     int    `json:"new"`           // number of messages that the agent has not been notified of
	How     string `json:"how,omitempty"` // an outcome as defined in package seat
	Why     string `json:"why"`           // why the agent was not notified; "" if it was
}

// Pass checks every agent once, and calls told for each agent that had to be woken. It returns any error from the
// index, or ctx's error.
func (n *Waker) Pass(ctx context.Context, by By, told func(Outcome)) error {
	look, err := n.everybody(ctx)
	if err != nil {
		return err
	}
	return n.pass(ctx, by, look, told)
}

// pass checks the agents in look that are due. It then removes each of them from look, unless waking the agent has
// failed.
func (n *Waker) pass(ctx context.Context, by By, look map[agentIn]attempt, told func(Outcome)) error {
	for w, a := range look {
		if a.at.After(time.Now()) {
			continue
		}
		left, err := n.wake(ctx, by, w, func(o Outcome) {
			if o.Why == "" || a.tries == 0 {
				told(o)
			}
		})
		switch {
		case err != nil:
			return err
		case left:
			look[w] = a.next(n.cfg.Retry)
		default:
			delete(look, w)
		}
	}
	return nil
}

// Nudge checks one agent in a project once, and calls told for each of the agent's seats that had to be woken. It
// returns any error from the index, or ctx's error.
func (n *Waker) Nudge(ctx context.Context, by By, project, agent string, told func(Outcome)) error {
	_, err := n.wake(ctx, by, agentIn{project, agent}, told)
	return err
}

// Watch runs a pass whenever mail arrives, a status changes or a turn ends. It returns nil when ctx is done. If an
// agent cannot be woken, Watch retries, but calls told only for the first failure.
func (n *Waker) Watch(ctx context.Context, by By, told func(Outcome)) error {
	if by.Types {
		defer n.cfg.Store.Types()()
	}
	mark, err := n.cfg.Store.LastChange(ctx)
	var look map[agentIn]attempt
	if err == nil {
		look, err = n.everybody(ctx)
	}
	for err == nil {
		turn := n.cfg.Store.TurnEnded() // obtained before the pass, so that no turn's end is missed
		if err = n.pass(ctx, by, look, told); err == nil {
			mark, err = n.wait(ctx, mark, look, turn)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// agentIn identifies an agent by its project and its name.
type agentIn struct{ project, agent string }

// attempt records how often waking an agent has failed, and when to retry.
type attempt struct {
	tries int
	at    time.Time // zero means now
}

func (a attempt) next(first time.Duration) attempt {
	return attempt{a.tries + 1, time.Now().Add(min(first<<min(a.tries, 16), retryMost))}
}

// everybody returns the agents of all projects, each due immediately.
func (n *Waker) everybody(ctx context.Context) (map[agentIn]attempt, error) {
	all := map[agentIn]attempt{}
	for _, p := range n.cfg.Store.Projects() {
		agents, err := p.Agents.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, a := range agents {
			all[agentIn{p.Slug, a.Name}] = attempt{}
		}
	}
	return all, nil
}

// wait waits until an agent in look is due, and returns the number of the last change that it has seen. If changes
// after mark concern an agent, wait adds that agent to look and returns after Config.Settle. If turn is closed, wait
// also returns after Config.Settle, and makes every agent in look due, as if there had been no attempt to wake it.
// Otherwise it returns when a retry is due.
func (n *Waker) wait(ctx context.Context, mark int64, look map[agentIn]attempt, turn <-chan struct{}) (int64, error) {
	waiting, cancel := waitingUntil(ctx, firstOf(look), turn)
	defer cancel()
	for due := false; !due; {
		changes, err := n.cfg.Store.WaitChanges(waiting, mark, 1000)
		switch {
		case errors.Is(err, errTurnEnded):
			due = true // the client will show its prompt within Config.Settle
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return mark, nil
		case err != nil:
			return mark, err
		}
		for _, c := range changes {
			if mark = c.Seq; c.Op != index.Removed && (c.Kind == format.KindInbox || c.Kind == format.KindStatus) {
				w := agentIn{c.Project, c.Agent}
				look[w], due = attempt{tries: look[w].tries}, true
			}
		}
	}
	select {
	case <-time.After(n.cfg.Settle):
	case <-ctx.Done():
	}
	select {
	case <-turn:
		for w := range look {
			look[w] = attempt{}
		}
	default:
	}
	return mark, ctx.Err()
}

var errTurnEnded = errors.New("a turn has ended")

// waitingUntil returns a context that is done when ctx is done, at the time until (unless it is zero), or when turn is
// closed. In the last case, the cause is errTurnEnded.
func waitingUntil(ctx context.Context, until time.Time, turn <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	waiting, cancel := ctx, func() { end(nil) }
	if !until.IsZero() {
		var stop context.CancelFunc
		waiting, stop = context.WithDeadline(ctx, until)
		cancel = func() { stop(); end(nil) }
	}
	go func() {
		select {
		case <-turn:
			end(errTurnEnded)
		case <-waiting.Done():
		}
	}()
	return waiting, cancel
}

func firstOf(look map[agentIn]attempt) (first time.Time) {
	for _, a := range look {
		if first.IsZero() || a.at.Before(first) {
			first = a.at
		}
	}
	return first
}

// wake checks one agent, and wakes it if necessary. If left is true, waking the agent must be retried.
func (n *Waker) wake(ctx context.Context, by By, w agentIn, told func(Outcome)) (left bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.cfg.Store.Project(ctx, w.project)
	if err != nil {
		return false, nil // the project has been removed
	}
	sleepers, err := p.Sessions.IdleSeats(ctx, by.query(w.agent))
	for i := range sleepers {
		o := n.wakeOne(ctx, by, p, &sleepers[i])
		if o.How == "" && o.Why == "" {
			continue
		}
		left = left || o.Why != ""
		n.cfg.Log.Debug("wake", "project", o.Project, "agent", o.Agent, "new", o.New, "how", o.How, "reason", o.Why)
		told(o)
	}
	return left, err
}

// wakeOne wakes the agent at a seat and returns the outcome. If there is nothing left to announce, the outcome's How
// and Why are "".
func (n *Waker) wakeOne(ctx context.Context, by By, p *maildir.Project, s *maildir.IdleSeat) Outcome {
	o := Outcome{Project: p.Slug, Agent: s.Agent, New: s.New}
	switch {
	case s.Works:
		o.Why = "it is working"
		return o
	case s.Rest > 0:
		o.Why = "two agents keep writing to each other, so the wake is delayed by up to a minute"
		return o
	}
	how, why := n.knock(ctx, by, p, s)
	if o.How, o.New = how, s.New; why != nil {
		o.How, o.Why = seat.Nobody, why.Error()
	}
	if o.How != "" {
		p.Sessions.NoteWake(s.Key, seat.Wake{Outcome: o.How, For: s.Newest, Why: o.Why})
	}
	return o
}

// notice returns the Text for an agent whose profile names the given program. The program reveals which toolset
// registered the agent, and therefore which tool the agent uses to read its mail.
func notice(program string) string {
	switch program {
	case "agentmail":
		return Text("receive")
	case "postal":
		return Text("check_mail")
	}
	return Text("check_my_messages")
}
