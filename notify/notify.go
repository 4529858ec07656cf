// Package notify runs the user's NOTIFY_COMMAND when something blocks the user. This is either a client's permission
// prompt, or urgent or important mail that needs the user's acknowledgment. maildir.Waits decides what blocks the user.
//
// See docs/reference/page.md, "Notifications".
package notify

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/keys"
	"mailtree/maildir/storedir"
)

// Store contains the methods of maildir.Store that this package uses.
type Store interface {
	Projects() []*maildir.Project
	LastChange(ctx context.Context) (int64, error)
	Changes(ctx context.Context, after int64, limit int) ([]index.Change, error)
	VerifiedIn(m *index.MessageRow) (keys.Voucher, bool)
	Proven(d *index.Delivery) bool
	WaitsEverywhere(ctx context.Context, agent string, q maildir.WaitsQuery) (*maildir.Waits, error)
	Project(ctx context.Context, key string) (*maildir.Project, error)
}

// Config configures a Notifier.
type Config struct {
	Store   Store
	Me      string   // the user's agent
	Command []string // the program and its arguments
	Looks   *Looks   // the threads on the user's screens; nil if unknown
	Log     *slog.Logger
}

const (
	between = 2 * time.Second // time between checks of the store
	scan    = 1000            // maximum number of changes to read at a time
	maxLine = 200             // maximum length of a line in bytes

	// patience is the time that a message or prompt must have blocked the user before the command runs. A user who
	// reads the message or answers the prompt immediately needs no notification.
	patience = 5 * time.Second
)

// Notifier runs the command once for each message or prompt that blocks the user. It does not report messages and
// prompts that already blocked the user when Run began.
type Notifier struct {
	cfg  Config
	mark int64
	told map[blocker]bool      // blockers that were reported, or must not be reported
	seen map[blocker]time.Time // when each unreported blocker was first seen
	mail bool                  // whether mail for the user has changed since the last check
	now  func() time.Time      // replaced by tests
}

// blocker identifies a message or a permission prompt that blocks the user. If message is "", it is a prompt from the
// client of an agent in the folder dir.
type blocker struct{ project, message, agent, dir string }

// New returns a Notifier. Call Run to start it.
func New(cfg Config) *Notifier {
	return &Notifier{cfg: cfg, told: map[blocker]bool{}, seen: map[blocker]time.Time{}, now: time.Now}
}

// Run checks the store until ctx is done. It logs errors, and continues with the next check.
func (n *Notifier) Run(ctx context.Context) {
	began := false
	look := time.NewTicker(between)
	defer look.Stop()
	for ctx.Err() == nil {
		var err error
		if began {
			err = n.look(ctx)
		} else if err = n.prime(ctx); err == nil {
			began = true
		}
		if err != nil && ctx.Err() == nil {
			n.cfg.Log.Warn("NOTIFY_COMMAND: cannot list what is waiting for the user", "error", err)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
		}
	}
}

// prime records the messages and prompts that already block the user.
func (n *Notifier) prime(ctx context.Context) (err error) {
	if n.mark, err = n.cfg.Store.LastChange(ctx); err != nil {
		return err
	}
	lines, err := n.blockers(ctx)
	for b := range lines {
		n.told[b] = true
	}
	return err
}

// look reports everything that has blocked the user for at least patience.
func (n *Notifier) look(ctx context.Context) error {
	if err := n.readChanges(ctx); err != nil {
		return err
	}
	if !n.mail && len(n.seen) == 0 && !n.prompts() {
		return nil
	}
	lines, err := n.blockers(ctx)
	if err != nil {
		return err
	}
	n.mail = false
	maps.DeleteFunc(n.seen, func(b blocker, _ time.Time) bool { _, ok := lines[b]; return !ok })
	// A later prompt of the same client counts as a new prompt.
	maps.DeleteFunc(n.told, func(b blocker, _ bool) bool { _, ok := lines[b]; return b.message == "" && !ok })
	for _, b := range slices.SortedFunc(maps.Keys(lines), before) {
		if n.told[b] {
			continue
		}
		if n.seen[b].IsZero() {
			n.seen[b] = n.now()
		}
		if n.now().Sub(n.seen[b]) < patience {
			continue
		}
		looked := b.message != "" && n.cfg.Looks.since(b.project, lines[b].thread, n.seen[b].Add(-between))
		n.told[b] = true
		delete(n.seen, b)
		if looked {
			continue
		}
		if err := run(ctx, n.cfg.Command, lines[b].text); err != nil && ctx.Err() == nil {
			n.cfg.Log.Warn("NOTIFY_COMMAND failed", "error", err)
		}
	}
	return nil
}

func before(a, b blocker) int {
	return slices.Compare([]string{a.project, a.message, a.agent, a.dir}, []string{b.project, b.message, b.agent, b.dir})
}

// readChanges reads the changes since the last check. It sets n.mail if a change affects the user's mail.
func (n *Notifier) readChanges(ctx context.Context) error {
	for {
		changes, err := n.cfg.Store.Changes(ctx, n.mark, scan)
		if err != nil {
			return err
		}
		for _, c := range changes {
			n.mark = c.Seq
			n.mail = n.mail || c.Kind == format.KindInbox && c.Agent == n.cfg.Me
		}
		if len(changes) < scan {
			return nil
		}
	}
}

// prompts reports whether a client is asking for permission, or was asking at the last check.
func (n *Notifier) prompts() bool {
	return slices.ContainsFunc(n.cfg.Store.Projects(), func(p *maildir.Project) bool { return len(p.Sessions.Prompts()) > 0 }) ||
		slices.ContainsFunc(slices.Collect(maps.Keys(n.told)), func(b blocker) bool { return b.message == "" })
}

// report contains the line that reports a blocker, and the message's thread. For a permission prompt, thread is "".
type report struct{ text, thread string }

// blockers returns the messages and prompts that block the user now, each with its report.
func (n *Notifier) blockers(ctx context.Context) (map[blocker]report, error) {
	w, err := n.cfg.Store.WaitsEverywhere(ctx, n.cfg.Me, maildir.WaitsQuery{All: true})
	if err != nil {
		return nil, err
	}
	lines := map[blocker]report{}
	for _, p := range w.Prompts {
		text := fmt.Sprintf("%s: %s asks for permission (%s)", storedir.SlugWord(p.Project), p.Agent, p.Client)
		lines[blocker{project: p.Project, agent: p.Agent, dir: p.Dir}] = report{text: line(text)}
	}
	for i := range w.Blocked {
		t := &w.Blocked[i]
		d, err := n.notable(ctx, t)
		if err != nil {
			return nil, err
		}
		if d != nil {
			text := fmt.Sprintf("%s: %s, %s: %s", storedir.SlugWord(t.Project), d.From, d.Importance, index.WithoutRe(d.Subject))
			lines[blocker{project: t.Project, message: t.Message}] = report{line(text), t.Thread}
		}
	}
	return lines, nil
}

// notable returns a thread's message if it is worth a notification. This is the case if the message is unread, its
// author is proven, and the user is not working on another machine. Otherwise, notable returns nil.
func (n *Notifier) notable(ctx context.Context, t *maildir.WaitingThread) (*index.Delivery, error) {
	p, err := n.cfg.Store.Project(ctx, t.Project)
	if err != nil {
		return nil, err
	}
	d, err := p.Box(n.cfg.Me, format.Origin{}).Delivery(ctx, t.Message)
	if err != nil || d.Read || !n.cfg.Store.Proven(d) {
		return nil, err
	}
	newest, err := p.Search(ctx, maildir.SearchRequest{Text: "from:" + n.cfg.Me, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(newest.Hits) > 0 {
		if by, _ := n.cfg.Store.VerifiedIn(&newest.Hits[0].MessageRow); by.Machine != "" {
			return nil, nil
		}
	}
	return d, nil
}

// line returns text as one printable line of at most maxLine bytes.
func line(text string) string {
	text = format.Printable(text)
	if cut := format.Cut(text, maxLine); cut != text {
		return cut + "…"
	}
	return text
}
