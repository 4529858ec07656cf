// Package wake wakes agents that are idle and have mail: MCP has nothing that starts an idle agent's
// turn. One loop (this file) looks at everybody whose mail or status has changed, and knocks at their
// seats, as maildir.Sleepers has them (seat.go): sessions of clients that have hooks, by the queue of
// their client (codex.go) or in tmux, and windows in tmux of other agents that say that they are ready.
// Clients that wait themselves need nobody here (maildir.AwaitNews).
//
// Nothing that a sender wrote is typed or queued: in a prompt it would be a person's word. Nothing
// is marked read. Who could not be woken is tried again, less and less often.
// See docs/hooks.md, "Waking", and docs/agentmail.md, "Waking an agent in tmux".
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

// Text is the notice to one who reads mail with that tool. To a shell it is no more than an unknown
// command.
func Text(tool string) string { return "You have new mail. Read it with " + tool + "." }

// Defaults of Config.
const (
	DefaultPause = 200 * time.Millisecond // Codex takes an Enter within 120 ms after fast keys for part of a paste
	DefaultRetry = 5 * time.Second
)

// retryMost is the longest time between two tries.
const retryMost = 2 * time.Minute

// Config says whose mail is watched. Store is needed.
type Config struct {
	Store  *maildir.Store
	Log    *slog.Logger  // nil: discarded
	Settle time.Duration // between a change and a look; 0: maildir.DefaultSettle
	Pause  time.Duration // between the text and Enter; 0: DefaultPause
	Retry  time.Duration // until one who could not be woken is tried again; doubles each time; 0: DefaultRetry
}

// Waker wakes agents for their mail. Safe for concurrent use: several passes at once still announce
// each message once.
type Waker struct {
	cfg Config
	mu  sync.Mutex // held while one agent is looked at and woken
}

// New makes a Waker. It starts nothing.
func New(cfg Config) *Waker {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Settle = cmp.Or(cfg.Settle, maildir.DefaultSettle)
	cfg.Pause = cmp.Or(cfg.Pause, DefaultPause)
	cfg.Retry = cmp.Or(cfg.Retry, DefaultRetry)
	return &Waker{cfg: cfg}
}

// By says on whose behalf agents are woken.
type By struct {
	Tmux  string // the $TMUX of whoever asks; "" outside tmux
	Types bool   // the notice may be typed into windows
	Again bool   // who was woken for the same messages is woken once more
}

func (by By) query(agent string) maildir.SleepQuery {
	return maildir.SleepQuery{Agent: agent, Windows: by.Types, Again: by.Again}
}

// Outcome is what became of one agent's notice.
type Outcome struct {
	Project string `json:"project"` // slug
	Agent   string `json:"agent"`
	New     int    `json:"new"`           // messages that it did not know of
	How     string `json:"how,omitempty"` // an outcome of package seat
	Why     string `json:"why"`           // why it was not told; "" when it was
}

// Pass looks once at every agent, and calls told for each that was due. Errors are the index's, or
// ctx's.
func (n *Waker) Pass(ctx context.Context, by By, told func(Outcome)) error {
	look, err := n.everybody(ctx)
	if err != nil {
		return err
	}
	return n.pass(ctx, by, look, told)
}

// pass looks at those of look whose time has come, and leaves in it whom it could not wake.
func (n *Waker) pass(ctx context.Context, by By, look map[whom]attempt, told func(Outcome)) error {
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

// Nudge looks once at one agent of a project, and calls told for each of its seats that was due.
// Errors are the index's, or ctx's.
func (n *Waker) Nudge(ctx context.Context, by By, project, agent string, told func(Outcome)) error {
	_, err := n.wake(ctx, by, whom{project, agent}, told)
	return err
}

// Watch runs a pass whenever mail comes or a status changes, until ctx ends; then it returns nil.
// It tries an agent again that it could not wake, and calls told for it the first time only.
func (n *Waker) Watch(ctx context.Context, by By, told func(Outcome)) error {
	mark, err := n.cfg.Store.LastChange(ctx)
	var look map[whom]attempt
	if err == nil {
		look, err = n.everybody(ctx)
	}
	for err == nil {
		if err = n.pass(ctx, by, look, told); err == nil {
			mark, err = n.wait(ctx, mark, look)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// whom is an agent of a project.
type whom struct{ project, agent string }

// attempt is how often an agent could not be woken, and when to look at it again.
type attempt struct {
	tries int
	at    time.Time // zero: now
}

func (a attempt) next(first time.Duration) attempt {
	return attempt{a.tries + 1, time.Now().Add(min(first<<min(a.tries, 16), retryMost))}
}

// everybody lists the agents of all projects.
func (n *Waker) everybody(ctx context.Context) (map[whom]attempt, error) {
	all := map[whom]attempt{}
	for _, p := range n.cfg.Store.Projects() {
		agents, err := p.Agents(ctx)
		if err != nil {
			return nil, err
		}
		for _, a := range agents {
			all[whom{p.Slug, a.Name}] = attempt{}
		}
	}
	return all, nil
}

// wait waits until one of look is to be looked at: for changes after mark that may make an agent due,
// which it notes in look and lets settle, or until one is to be tried again. It returns the last change
// that it has seen.
func (n *Waker) wait(ctx context.Context, mark int64, look map[whom]attempt) (int64, error) {
	waiting := ctx
	if first := firstOf(look); !first.IsZero() {
		var cancel context.CancelFunc
		waiting, cancel = context.WithDeadline(ctx, first)
		defer cancel()
	}
	for due := false; !due; {
		changes, err := n.cfg.Store.WaitChanges(waiting, mark, 1000)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return mark, nil
		}
		if err != nil {
			return mark, err
		}
		for _, c := range changes {
			if mark = c.Seq; c.Op != index.Removed && (c.Kind == format.KindInbox || c.Kind == format.KindStatus) {
				w := whom{c.Project, c.Agent}
				look[w], due = attempt{tries: look[w].tries}, true
			}
		}
	}
	select {
	case <-time.After(n.cfg.Settle):
	case <-ctx.Done():
	}
	return mark, ctx.Err()
}

func firstOf(look map[whom]attempt) (first time.Time) {
	for _, a := range look {
		if first.IsZero() || a.at.Before(first) {
			first = a.at
		}
	}
	return first
}

// wake looks at one agent, and wakes it where it is due; left is true where somebody is to try again.
func (n *Waker) wake(ctx context.Context, by By, w whom, told func(Outcome)) (left bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.cfg.Store.Project(ctx, w.project)
	if err != nil {
		return false, nil // it was taken away
	}
	sleepers, err := p.Sleepers(ctx, by.query(w.agent))
	for i := range sleepers {
		o := n.wakeOne(ctx, by, p, &sleepers[i])
		if o.How == "" && o.Why == "" {
			continue
		}
		left = left || o.Why != ""
		n.cfg.Log.Debug("wake", "project", o.Project, "agent", o.Agent, "new", o.New, "how", o.How, "why not", o.Why)
		told(o)
	}
	return left, err
}

// wakeOne wakes the agent of a seat, and notes how that went. Where there was nothing to tell any more
// the outcome says neither how nor why not.
func (n *Waker) wakeOne(ctx context.Context, by By, p *maildir.Project, s *maildir.Sleeper) Outcome {
	o := Outcome{Project: p.Slug, Agent: s.Agent, New: s.New}
	switch {
	case s.Works:
		o.Why = "it works"
		return o
	case s.Rest > 0:
		o.Why = "two agents write to each other without a pause: the wake waits for a minute"
		return o
	}
	how, why := n.knock(ctx, by, p, s)
	if o.How, o.New = how, s.New; why != nil {
		o.How, o.Why = seat.Nobody, why.Error()
	}
	if o.How != "" {
		p.NoteWake(s.Key, seat.Wake{Outcome: o.How, For: s.Newest, Why: o.Why})
	}
	return o
}

// notice is Text with the one tool that an agent has which was registered as that program.
func notice(program string) string {
	switch program {
	case "agentmail":
		return Text("receive")
	case "postal":
		return Text("check_mail")
	}
	return Text("check_my_messages")
}
