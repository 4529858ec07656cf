package maildir

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// Firing is a hook and a copy that it may have to run for.
type Firing struct {
	Hook  Hook
	Owner int    // whose the mailbox is
	ID    string // of the message
	Path  string // the copy, in the tree
}

// HookRun is a run that was noted in the log and is to be made, now.
type HookRun struct {
	Firing
	File          string // absolute path of the copy
	Data          []byte // the copy
	MessageID     string
	From, To      string // addresses; those in To separated by commas
	Subject, Date string
}

// Firings returns the runs that changes call for, in their order. Whether each is to be made Fire decides.
// Errors: ErrUnavailable while owners.json or hooks.json cannot be read, and ctx's: it waits for a project that is being opened.
func (s *Store) Firings(ctx context.Context, changes []Change) ([]Firing, error) {
	came := slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return c.Op != Added || eventOf(c.Kind) == "" })
	if len(came) == 0 {
		return nil, nil
	}
	hooks, err := s.hooks.settled()
	if err != nil || len(hooks) == 0 {
		return nil, err
	}
	var all []Firing
	for _, c := range came {
		for _, h := range hooks {
			if h.Project == c.Project && h.Mailbox == c.Agent && h.Event == eventOf(c.Kind) && h.follows(&c) {
				all = append(all, Firing{Hook: h, ID: c.ID, Path: c.Path})
			}
		}
	}
	return all, s.owned(ctx, all)
}

// eventOf is the event that a new file of that kind is; "" for none.
func eventOf(k format.Kind) string {
	switch k {
	case format.KindInbox:
		return OnReceive
	case format.KindOutbox:
		return AfterSend
	}
	return ""
}

// owned fills in whose the mailboxes are.
func (s *Store) owned(ctx context.Context, all []Firing) error {
	owners, err := s.owners.loadOwners()
	for i := range all {
		p, lost := s.knownSoon(ctx, all[i].Hook.Project)
		if lost != nil {
			return lost
		}
		if p != nil {
			all[i].Owner = p.owner(owners, all[i].Hook.Mailbox)
		}
	}
	return err
}

// MissedFirings returns the runs for everything that is newer than its hook and not in the log, oldest first for each
// hook: what there is to do when changes are no longer in the feed, because the index was made anew.
func (s *Store) MissedFirings(ctx context.Context, l *HookLog) ([]Firing, error) {
	hooks, err := s.hooks.loadHooks()
	if err != nil {
		return nil, err
	}
	var all []Firing
	for _, h := range hooks {
		missed, err := s.missed(ctx, &h, l)
		if err != nil {
			return nil, err
		}
		all = append(all, missed...)
	}
	return all, s.owned(ctx, all)
}

func (s *Store) missed(ctx context.Context, h *Hook, l *HookLog) ([]Firing, error) {
	var all []Firing
	add := func(m *MessageRow, path string) {
		if m.Created.After(h.Created) && !l.Ran(h, m.ID) {
			all = append(all, Firing{Hook: *h, ID: m.ID, Path: path})
		}
	}
	each := s.eachReceived
	if h.Event == AfterSend {
		each = s.eachSent
	}
	err := each(ctx, h, add)
	slices.Reverse(all)
	return all, err
}

// eachReceived calls fn for everything in the inbox that is newer than the hook, newest first.
func (s *Store) eachReceived(ctx context.Context, h *Hook, fn func(m *MessageRow, path string)) error {
	for q := (InboxQuery{Project: h.Project, Agent: h.Mailbox, Since: h.Created, Limit: MaxPage}); ; {
		rows, _, err := s.index.Inbox(ctx, q)
		if err != nil || len(rows) == 0 {
			return err
		}
		for i := range rows {
			fn(&rows[i].MessageRow, rows[i].CopyPath)
		}
		q.Before = rows[len(rows)-1].Cursor
	}
}

// eachSent calls fn for everything in the outbox, last id first.
func (s *Store) eachSent(ctx context.Context, h *Hook, fn func(m *MessageRow, path string)) error {
	for q := (BoxQuery{Project: h.Project, Agent: h.Mailbox, Sent: true, Limit: MaxPage}); ; {
		rows, err := s.index.Box(ctx, q)
		if err != nil || len(rows) == 0 {
			return err
		}
		for i := range rows {
			fn(&rows[i].MessageRow, rows[i].CopyPath)
		}
		q.Before = rows[len(rows)-1].ID // an offset would pass over one where another is removed meanwhile
	}
}

// Fire decides whether a run is to be made, and if so notes it in the log, durably: the caller then makes it, once. Nil
// where it is not: the hook or the copy is gone, the mailbox has another owner than the hook, the command cannot be run as
// that owner, the message is not trusted or is older than the hook, or the run has begun before; why says which.
// Errors: ErrUnavailable, or ctx's as of Firings, when nothing is decided.
func (s *Store) Fire(ctx context.Context, f Firing, l *HookLog) (run *HookRun, why string, err error) {
	if why, err = s.stands(ctx, &f); why != "" || err != nil {
		return nil, why, err
	}
	p := s.known(f.Hook.Project)
	m, data, err := p.readMessage(f.Path, f.ID)
	var bad *tree.FormatError
	switch {
	case tree.FaultOf(err) == tree.FaultGone, errors.As(err, &bad):
		return nil, "the copy is gone", nil
	case err != nil:
		return nil, "", refusal.Disk(err)
	}
	if _, sealed := s.VerifiedHere(m); sealed && f.Hook.outdates(m, s.stamp.time()) {
		return nil, "the message is older than the hook", nil
	}
	if f.Hook.Event == OnReceive && !f.Hook.FireOnUntrusted && p.trust(m, f.Hook.Mailbox) != Trusted {
		return nil, "the message is not trusted", nil
	}
	first, err := l.beginRun(&f.Hook, f.ID)
	if err != nil {
		return nil, "", err
	}
	if !first {
		return nil, "it has run before", nil
	}
	return &HookRun{Firing: f, File: filepath.Join(p.tree.Dir(), filepath.FromSlash(f.Path)), Data: data, MessageID: s.MessageID(m.ID), From: s.Address(m.From), To: s.Addresses(m.To),
		Subject: m.Subject, Date: m.Created.Format(time.RFC3339Nano)}, "", nil
}

// stands looks whether the hook of a firing is still there and may run, and fills in whose the mailbox is now. why says
// why not, "" where it may.
func (s *Store) stands(ctx context.Context, f *Firing) (why string, err error) {
	hooks, err := s.hooks.loadHooks()
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(hooks, func(h Hook) bool { return h.key() == f.Hook.key() && h.same(&f.Hook) })
	one := []Firing{*f}
	if err := s.owned(ctx, one); err != nil {
		return "", err
	}
	f.Owner = one[0].Owner
	if at < 0 || s.known(f.Hook.Project) == nil {
		return "the hook is gone", nil
	}
	f.Hook = hooks[at]
	switch {
	case f.Hook.check() != nil:
		return "the hook cannot be run: " + f.Hook.check().Error(), nil
	case f.Hook.Owner != nil && *f.Hook.Owner != f.Owner:
		return "the mailbox has another owner than the hook", nil
	case !s.runsAs(f.Owner):
		return "this server cannot run commands as the owner of the mailbox", nil
	}
	return "", nil
}
