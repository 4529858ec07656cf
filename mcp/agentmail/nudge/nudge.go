// Package nudge types a notice into the tmux window of an agent that is ready and has new mail: MCP
// has nothing that starts an idle agent's turn. The domain (maildir.Notice) decides whom to tell
// and announces each message once; this package finds where the agent sits and types. It types
// nothing that a sender wrote, and marks nothing read.
//
// The window of an agent is the pane from which it last called an agentmail tool. For an agent that
// never called one, it is the only window of that name in the session of whoever nudges, if the
// program in it works in the project's code base. A pane in which somebody scrolls, or whose input
// is shared, is left alone and tried again.
// See docs/agentmail.md, "Waking an agent in tmux".
package nudge

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/mcp/agentmail/tmux"
)

// Text is the notice. It repeats nothing of a message, and to a shell it is no more than an unknown
// command.
const Text = "You have new mail. Read it with your mail tool: receive, check_mail or check_my_messages."

// Defaults of Config.
const (
	DefaultSettle = time.Second            // who waits for mail in a long poll has it by then
	DefaultPause  = 200 * time.Millisecond // Codex takes an Enter within 120 ms after fast keys for part of a paste
	DefaultRetry  = 5 * time.Second
)

// Config says whose mail is watched. Store is needed.
type Config struct {
	Store  *maildir.Store
	Log    *slog.Logger  // nil: discarded
	Settle time.Duration // between a change and a look; 0: DefaultSettle
	Pause  time.Duration // between the text and Enter; 0: DefaultPause
	Retry  time.Duration // until one who could not be told is tried again; 0: DefaultRetry
}

// Nudger tells agents of their mail. Safe for concurrent use: several passes at once still announce
// each message once.
type Nudger struct {
	cfg Config
	mu  sync.Mutex // held while one agent is looked at and told
}

// New makes a Nudger. It starts nothing.
func New(cfg Config) *Nudger {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		v     *time.Duration
		deflt time.Duration
	}{{&cfg.Settle, DefaultSettle}, {&cfg.Pause, DefaultPause}, {&cfg.Retry, DefaultRetry}} {
		if *d.v == 0 {
			*d.v = d.deflt
		}
	}
	return &Nudger{cfg: cfg}
}

// Outcome is what became of one agent's notice.
type Outcome struct {
	Project string `json:"project"` // slug
	Agent   string `json:"agent"`
	New     int    `json:"new"` // messages that it did not know of
	Why     string `json:"why"` // why it was not told; "" when it was
}

// Pass looks once at every agent. session is the $TMUX of whoever asks, "" outside tmux. Pass calls
// told for each agent that was due. Errors are the index's, or ctx's.
func (n *Nudger) Pass(ctx context.Context, session string, told func(Outcome)) error {
	_, err := n.tell(ctx, session, nil, told)
	return err
}

// Watch runs a pass whenever mail comes or a status changes, until ctx ends; then it returns nil.
// It tries an agent again that it could not tell, and calls told for it the first time only.
func (n *Nudger) Watch(ctx context.Context, session string, told func(Outcome)) error {
	mark, err := n.cfg.Store.LastChange(ctx)
	if err != nil {
		return ended(ctx, err)
	}
	due, err := n.tell(ctx, session, nil, told)
	for err == nil {
		var again map[whom]bool
		if again, mark, err = n.wait(ctx, mark, len(due) > 0); err != nil {
			break
		}
		for w := range due {
			again[w] = true
		}
		known := due
		due, err = n.tell(ctx, session, again, func(o Outcome) {
			if o.Why == "" || !known[whom{o.Project, o.Agent}] {
				told(o)
			}
		})
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

// wait waits for changes that may make an agent due, lets them settle and returns the agents they
// concern. With retry it returns after Config.Retry in any case.
func (n *Nudger) wait(ctx context.Context, mark int64, retry bool) (map[whom]bool, int64, error) {
	waiting := ctx
	if retry {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, n.cfg.Retry)
		defer cancel()
	}
	some := map[whom]bool{}
	for len(some) == 0 {
		changes, err := n.cfg.Store.WaitChanges(waiting, mark, 1000)
		if err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)) {
			return nil, mark, err
		}
		if err != nil {
			return some, mark, nil
		}
		for _, c := range changes {
			if mark = c.Seq; c.Op != maildir.Removed && (c.Kind == format.KindInbox || c.Kind == format.KindStatus) {
				some[whom{c.Project, c.Agent}] = true
			}
		}
	}
	select {
	case <-time.After(n.cfg.Settle):
	case <-ctx.Done():
	}
	return some, mark, ctx.Err()
}

// tell tells the agents of some that are due, all agents for nil, and returns those it could not
// tell.
func (n *Nudger) tell(ctx context.Context, session string, some map[whom]bool, told func(Outcome)) (map[whom]bool, error) {
	if some == nil {
		some = map[whom]bool{}
		for _, p := range n.cfg.Store.Projects() {
			agents, err := p.Agents(ctx)
			if err != nil {
				return nil, err
			}
			for _, a := range agents {
				some[whom{p.Slug(), a.Name}] = true
			}
		}
	}
	left := map[whom]bool{}
	for w := range some {
		o, err := n.one(ctx, session, w)
		if err != nil {
			return left, err
		}
		if o == nil {
			continue
		}
		if o.Why != "" {
			left[w] = true
		}
		n.cfg.Log.Debug("nudge", "project", o.Project, "agent", o.Agent, "new", o.New, "why not", o.Why)
		told(*o)
	}
	return left, nil
}

// one tells one agent; it returns nil when there is nothing to tell.
func (n *Nudger) one(ctx context.Context, session string, w whom) (*Outcome, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p, err := n.cfg.Store.Project(ctx, w.project)
	if err != nil {
		return nil, nil // it was taken away
	}
	notice, err := p.Notice(ctx, w.agent)
	if notice == nil {
		return nil, err
	}
	o := &Outcome{Project: w.project, Agent: w.agent, New: notice.New}
	s, pane, err := n.findWindow(ctx, session, p, notice)
	if err != nil {
		o.Why = err.Error()
		return o, nil
	}
	if err := s.Free(ctx, pane); err != nil {
		o.Why = err.Error()
		return o, nil
	}
	if notice, err = p.Notice(ctx, w.agent); notice == nil { // tmux took its time
		return nil, err
	}
	o.New = notice.New
	if !p.Told(notice) { // before: of a notice that came to nothing the agent hears with the next message, of two it hears too much
		return nil, nil
	}
	if err := s.Type(context.WithoutCancel(ctx), pane, Text, n.cfg.Pause); err != nil { // it counts as told
		o.Why = err.Error()
	}
	return o, nil
}

// findWindow finds the pane that the agent sits at: where it called from, else by its name. The
// error says why there is none now.
func (n *Nudger) findWindow(
	ctx context.Context, session string, p *maildir.Project, of *maildir.Notice,
) (s tmux.Session, pane string, err error) {
	err = errors.New("it has not called from a tmux window")
	if seat := of.Seat; seat.Tmux != "" {
		s, pane, err = look(ctx, seat.Tmux, seat.Pane, func(at tmux.Pane) bool {
			return at.ID == seat.Pane && (seat.Window == "" || at.Window == seat.Window)
		})
	}
	if pane != "" || session == "" || errors.Is(err, errNotQuiet) {
		return s, pane, err
	}
	return look(ctx, session, "", func(at tmux.Pane) bool { return at.Window == of.Agent && at.Active && p.Covers(at.Dir) })
}

var errNotQuiet = errors.New("somebody scrolls in its window, or the window's input is off or shared")

// look finds the only pane of a session that is the agent's.
func look(ctx context.Context, value, near string, its func(tmux.Pane) bool) (s tmux.Session, pane string, err error) {
	if s, err = tmux.Parse(value); err != nil {
		return s, "", err
	}
	panes, err := s.Panes(ctx, near)
	if err != nil {
		return s, "", err
	}
	panes = slices.DeleteFunc(panes, func(at tmux.Pane) bool { return !its(at) })
	switch {
	case len(panes) == 0:
		return s, "", errors.New("it has no window here")
	case len(panes) > 1:
		return s, "", errors.New("several windows have its name")
	case !panes[0].Quiet:
		return s, "", errNotQuiet
	}
	return s, panes[0].ID, nil
}
