package hook

import (
	"slices"
	"time"

	"mailtree/maildir/format"
)

// Arrival is a copy that appeared in a mailbox, as the feed of changes has it.
type Arrival struct {
	Project string // slug
	Mailbox string
	Event   string // OnReceive or AfterSend
	ID      string // of the message
	Path    string // the copy, in the tree
	Seq     int64  // of the change
	At      time.Time
}

// Firing is a hook and a copy that it may have to run for.
type Firing struct {
	Hook  Hook
	Owner int    // whose the mailbox is
	ID    string // of the message
	Path  string // the copy, in the tree
}

// Run is a run that was noted in the log and is to be made, now.
type Run struct {
	Firing
	File      string // absolute path of the copy
	Data      []byte // the copy
	MessageID string
	From      string // address
	To        string // addresses, separated by commas
	Subject   string
	Date      string
}

// Firings returns what arrivals call for, in their order, without owners. It also writes down when
// hooks that a person wrote were made; otherwise they would count as made whenever the file is
// changed. Where that cannot be written, the next call tries again.
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

// precedes reports whether the hook was made before an arrival. The numbers of changes tell,
// because the clock may have been set back since; the feed goes on.
func (h *Hook) precedes(a *Arrival) bool {
	if h.After > 0 {
		return a.Seq > h.After
	}
	return !a.At.Before(h.Created)
}

// Stands looks whether the hook of a firing is still in the list and may run for the firing's
// owner, and puts it into the firing as it is now. why says why it may not, "" where it may.
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
		return "the hook cannot be run: " + err.Error(), nil
	}
	if f.Hook.Owner != nil && *f.Hook.Owner != f.Owner {
		return "the mailbox has another owner than the hook", nil
	}
	return "", nil
}

// Gone is why a hook does not run that is no longer there.
const Gone = "the hook is gone"

// Copy is what decides whether a hook runs for a copy.
type Copy struct {
	Message *format.Message
	Sealed  bool // by this store's own server
	Trusted bool // as of docs/email.md, "Trust"
}

// WhyNot says why the hook of a firing does not run for the copy; "" where it does. Only a seal
// vouches for the date that a message bears.
func (f *Firing) WhyNot(c Copy, now time.Time) string {
	switch {
	case c.Sealed && f.Hook.outdates(c.Message, now):
		return "the message is older than the hook"
	case c.Sealed && now.Sub(c.Message.Created) > Kept:
		return "the message is so old that it may have run before"
	case f.Hook.Event == OnReceive && !f.Hook.FireOnUntrusted && !c.Trusted:
		return "the message is not trusted"
	}
	return ""
}

// outdates reports whether the hook was made after the message was sent. The dates do not tell
// while the hook's lies in the future: then the clock was set back since it was made, and mail that
// came later has earlier dates.
func (h *Hook) outdates(m *format.Message, now time.Time) bool {
	return m.Created.Before(h.Created) && !h.Created.After(now)
}
