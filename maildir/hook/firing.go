package hook

import (
	"slices"
	"time"

	"mailtree/maildir/format"
)

// Arrival is a copy that has appeared in a mailbox, according to the feed of changes.
type Arrival struct {
	Project string // slug
	Mailbox string
	Event   string // OnReceive or AfterSend
	ID      string // id of the message
	Path    string // path of the copy in the tree
	Seq     int64  // number of the change in the feed
	At      time.Time
}

// Firing is a hook together with a copy of a message for which the hook may have to run.
type Firing struct {
	Hook  Hook
	Owner int    // uid of the mailbox's owner
	ID    string // id of the message
	Path  string // path of the copy in the tree
}

// Run is a run of a hook. Its mark has been written to the log, so its command must start now.
type Run struct {
	Firing
	File      string // absolute path of the copy
	Data      []byte // content of the copy
	MessageID string
	From      string // address
	To        string // comma-separated addresses
	Subject   string
	Date      string

	Attachments []format.Attachment // with absolute paths
}

// Firings returns the firings for arrivals, in order, without Owner. It also stores a Created time for hooks that the
// user added to the file. Otherwise these hooks' creation time would change whenever the file changes. If storing the
// time fails, the next call tries again.
func (l *List) Firings(arrivals []Arrival) ([]Firing, error) {
	if len(arrivals) == 0 {
		return nil, nil
	}
	if c, err := l.file.Load(); err == nil && c.filled {
		_ = l.change(func(all []Hook) ([]Hook, error) { return all, nil })
	}
	hooks, err := l.Load()
	if err != nil {
		return nil, err
	}
	var all []Firing
	for i := range arrivals {
		a := &arrivals[i]
		for _, h := range hooks {
			if h.Project == a.Project && h.Mailbox == a.Mailbox && h.Event == a.Event && h.precedes(a) {
				all = append(all, Firing{Hook: h, ID: a.ID, Path: a.Path})
			}
		}
	}
	return all, nil
}

// precedes reports whether the hook was created before an arrival. If possible, precedes compares change numbers,
// because change numbers only increase, but the clock may have been set back.
func (h *Hook) precedes(a *Arrival) bool {
	if h.After > 0 {
		return a.Seq > h.After
	}
	return !a.At.Before(h.Created)
}

// Stands checks whether a firing's hook is still in the list and may run for the firing's owner. It sets f.Hook to the
// hook's current version. If the hook may not run, why gives the reason. Otherwise, why is "".
func (l *List) Stands(f *Firing) (why string, err error) {
	hooks, err := l.Load()
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(hooks, func(h Hook) bool { return h.Key() == f.Hook.Key() && h.same(&f.Hook) })
	if at < 0 {
		return Gone, nil
	}
	f.Hook = hooks[at]
	if err := f.Hook.check(); err != nil {
		return "the hook is not valid: " + err.Error(), nil
	}
	if f.Hook.Owner != nil && *f.Hook.Owner != f.Owner {
		return "the mailbox and the hook have different owners", nil
	}
	return "", nil
}

// Gone is the reason given when a deleted hook does not run.
const Gone = "the hook was deleted"

// Copy contains the facts about a copy that decide whether a hook runs for it.
type Copy struct {
	Message *format.Message
	Sealed  bool // sealed by this store's own server
	Trusted bool // trusted as defined in docs/reference/email.md, "Trust"
}

// WhyNot returns the reason why a firing's hook does not run for the copy, or "" if it runs. It uses the message's date
// only if the message is sealed.
func (f *Firing) WhyNot(c Copy, now time.Time) string {
	switch {
	case c.Sealed && f.Hook.outdates(c.Message, now):
		return "the message is older than the hook"
	case c.Sealed && now.Sub(c.Message.Created) > Kept:
		return "the message is so old that the hook may already have run for it"
	case f.Hook.Event == OnReceive && !f.Hook.FireOnUntrusted && !c.Trusted:
		return "the message is not trusted"
	}
	return ""
}

// outdates reports whether the hook was created after the message was sent. If the hook's creation time is in the
// future, the clock was set back after the hook was created, and newer mail may have earlier dates. Therefore, outdates
// then returns false.
func (h *Hook) outdates(m *format.Message, now time.Time) bool {
	return m.Created.Before(h.Created) && !h.Created.After(now)
}
