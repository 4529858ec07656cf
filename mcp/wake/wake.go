// Package wake wakes agents that are idle and have mail: MCP has nothing that starts an idle
// agent's turn. One loop looks at everybody whose mail or status has changed:
//
//	session.go  sessions of clients that have hooks, as maildir.Sleepers has them: by the queue of
//	            their client (codex.go), or in tmux. Clients that wait themselves need nobody here
//	            (maildir.AwaitNews).
//	window.go   other agents that say that they are ready, as maildir.Notice has them: in tmux
//
// Nothing that a sender wrote is typed or queued: in a prompt it would be a person's word. Nothing
// is marked read. Who could not be woken is tried again, less and less often.
// See docs/hooks.md, "Waking", and docs/agentmail.md, "Waking an agent in tmux".
package wake

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// Text is the notice to one who reads mail with that tool. To a shell it is no more than an unknown
// command.
func Text(tool string) string { return "You have new mail. Read it with " + tool + "." }

// Defaults of Config.
const (
	DefaultPause    = 200 * time.Millisecond // Codex takes an Enter within 120 ms after fast keys for part of a paste
	DefaultRetry    = 5 * time.Second
	DefaultRetryMax = 2 * time.Minute
)

// Config says whose mail is watched. Store is needed.
type Config struct {
	Store    *maildir.Store
	Log      *slog.Logger  // nil: discarded
	Settle   time.Duration // between a change and a look; 0: maildir.DefaultSettle
	Pause    time.Duration // between the text and Enter; 0: DefaultPause
	Retry    time.Duration // until one who could not be woken is tried again; doubles each time; 0: DefaultRetry
	RetryMax time.Duration // the longest time between two tries; 0: DefaultRetryMax
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
	for _, d := range []struct {
		v     *time.Duration
		deflt time.Duration
	}{
		{&cfg.Settle, maildir.DefaultSettle}, {&cfg.Pause, DefaultPause}, {&cfg.Retry, DefaultRetry}, {&cfg.RetryMax, DefaultRetryMax},
	} {
		if *d.v == 0 {
			*d.v = d.deflt
		}
	}
	return &Waker{cfg: cfg}
}

// By says on whose behalf agents are woken.
type By struct {
	Tmux  string // the $TMUX of whoever asks; "" outside tmux
	Types bool   // the notice may be typed into windows
	Again bool   // sessions that were woken for the same messages are woken once more
}

// Outcome is what became of one agent's notice.
type Outcome struct {
	Project string `json:"project"` // slug
	Agent   string `json:"agent"`
	New     int    `json:"new"`           // messages that it did not know of
	How     string `json:"how,omitempty"` // an outcome of package session, of a session
	Why     string `json:"why"`           // why it was not told; "" when it was
}

// Pass looks once at every agent, and calls told for each that was due. Errors are the index's, or
// ctx's.
func (n *Waker) Pass(ctx context.Context, by By, told func(Outcome)) error {
	all, err := n.everybody(ctx)
	if err != nil {
		return err
	}
	for w := range all {
		if _, err := n.wake(ctx, by, w, told); err != nil {
			return err
		}
	}
	return nil
}

// Nudge looks once at one agent of a project, and calls told for each of its sessions that was due.
// Errors are the index's, or ctx's.
func (n *Waker) Nudge(ctx context.Context, by By, project, agent string, told func(Outcome)) error {
	_, err := n.wake(ctx, by, whom{project, agent}, told)
	return err
}

// Watch runs a pass whenever mail comes or a status changes, until ctx ends; then it returns nil.
// It tries an agent again that it could not wake, and calls told for it the first time only.
func (n *Waker) Watch(ctx context.Context, by By, told func(Outcome)) error {
	mark, err := n.cfg.Store.LastChange(ctx)
	if err != nil {
		return ended(ctx, err)
	}
	look, err := n.everybody(ctx)
	late := map[whom]attempt{} // those that could not be woken
	for err == nil {
		for w := range look {
			known := late[w]
			left, werr := n.wake(ctx, by, w, func(o Outcome) {
				if o.Why == "" || known.tries == 0 {
					told(o)
				}
			})
			if err = werr; err != nil {
				return ended(ctx, err)
			}
			if delete(late, w); left {
				late[w] = known.next(time.Now(), n.cfg.Retry, n.cfg.RetryMax)
			}
		}
		look, mark, err = n.wait(ctx, mark, late)
	}
	return ended(ctx, err)
}

func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// whom is an agent of a project.
type whom struct{ project, agent string }

// attempt is how often an agent could not be woken, and when to try again.
type attempt struct {
	tries int
	at    time.Time
}

func (a attempt) next(now time.Time, first, most time.Duration) attempt {
	pause := min(first<<min(a.tries, 16), most)
	return attempt{a.tries + 1, now.Add(pause)}
}

// everybody lists the agents of all projects.
func (n *Waker) everybody(ctx context.Context) (map[whom]bool, error) {
	all := map[whom]bool{}
	for _, p := range n.cfg.Store.Projects() {
		agents, err := p.Agents(ctx)
		if err != nil {
			return nil, err
		}
		for _, a := range agents {
			all[whom{p.Slug, a.Name}] = true
		}
	}
	return all, nil
}

// wait waits for changes that may make an agent due and lets them settle, or until one is to be
// tried again. It returns the agents to look at.
func (n *Waker) wait(ctx context.Context, mark int64, late map[whom]attempt) (map[whom]bool, int64, error) {
	waiting := ctx
	if first := firstOf(late); !first.IsZero() {
		var cancel context.CancelFunc
		waiting, cancel = context.WithDeadline(ctx, first)
		defer cancel()
	}
	look := map[whom]bool{}
	for len(look) == 0 {
		changes, err := n.cfg.Store.WaitChanges(waiting, mark, 1000)
		if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
			return nil, mark, err
		}
		if err != nil {
			now := time.Now()
			for w, a := range late {
				if !a.at.After(now) {
					look[w] = true
				}
			}
			return look, mark, nil
		}
		for _, c := range changes {
			if mark = c.Seq; c.Op != index.Removed && (c.Kind == format.KindInbox || c.Kind == format.KindStatus) {
				look[whom{c.Project, c.Agent}] = true
			}
		}
	}
	select {
	case <-time.After(n.cfg.Settle):
	case <-ctx.Done():
	}
	return look, mark, ctx.Err()
}

func firstOf(late map[whom]attempt) (first time.Time) {
	for _, a := range late {
		if first.IsZero() || a.at.Before(first) {
			first = a.at
		}
	}
	return first
}

// wake wakes one agent; left is true where somebody is to try again.
func (n *Waker) wake(ctx context.Context, by By, w whom, told func(Outcome)) (left bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.cfg.Store.Project(ctx, w.project)
	if err != nil {
		return false, nil // it was taken away
	}
	var all []Outcome
	if p.HasSession(w.agent) {
		all, err = n.wakeSessions(ctx, by, p, w.agent)
	} else if by.Types {
		all, err = n.tellReady(ctx, by, p, w.agent)
	}
	for _, o := range all {
		left = left || o.Why != ""
		n.cfg.Log.Debug("wake", "project", o.Project, "agent", o.Agent, "new", o.New, "how", o.How, "why not", o.Why)
		told(o)
	}
	return left, err
}

// notice is Text with the one tool that the agent has: agentmail's where the agent called from a pane,
// as that toolset alone notes, else that of the toolset that made the agent.
func notice(ctx context.Context, p *maildir.Project, agent string) string {
	program, seat := p.CallsAs(ctx, agent)
	switch {
	case program == "agentmail", seat != maildir.Seat{}:
		return Text("receive")
	case program == "postal":
		return Text("check_mail")
	}
	return Text("check_my_messages")
}
