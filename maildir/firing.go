package maildir

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"mailtree/maildir/hook"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// Firings returns the firings that result from changes, in order. Fire later decides, for each firing, whether its
// hook runs. If a project is being opened, Firings waits for it. Firings returns ErrUnavailable if owners.json or
// hooks.json cannot be read, and ctx's error if ctx ends during the wait.
func (s *Store) Firings(ctx context.Context, changes []index.Change) ([]hook.Firing, error) {
	var arrivals []hook.Arrival
	for i := range changes {
		c := &changes[i]
		event := hook.EventOf(c.Kind)
		if c.Op != index.Added || event == "" {
			continue
		}
		arrivals = append(arrivals, hook.Arrival{
			Project: c.Project,
			Mailbox: c.Agent,
			Event:   event,
			ID:      c.ID,
			Path:    c.Path,
			Seq:     c.Seq,
			At:      c.At,
		})
	}
	all, err := s.core.Hooks.Firings(arrivals)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all, s.fillOwners(ctx, all)
}

// fillOwners sets the owner of each firing's mailbox.
func (s *Store) fillOwners(ctx context.Context, all []hook.Firing) error {
	owners, err := s.core.Owners.LoadOwners()
	for i := range all {
		p, lost := s.knownSoon(ctx, all[i].Hook.Project)
		if lost != nil {
			return lost
		}
		if p != nil {
			all[i].Owner = p.mail.Owner(owners, all[i].Hook.Mailbox)
		}
	}
	return err
}

// MissedFirings returns the firings for all mail that is newer than its hook, is not in the log, and is not older than
// the log's retention period. For each hook, the oldest firing comes first. MissedFirings is used for mail whose
// changes are missing from the feed because the index was rebuilt.
func (s *Store) MissedFirings(ctx context.Context, l *hook.Log) ([]hook.Firing, error) {
	hooks, err := s.core.Hooks.Load()
	if err != nil {
		return nil, err
	}
	var all []hook.Firing
	for _, h := range hooks {
		missed, err := s.missedOf(ctx, &h, l)
		if err != nil {
			return nil, err
		}
		all = append(all, missed...)
	}
	return all, s.fillOwners(ctx, all)
}

// missedOf is like MissedFirings, but for one hook. It does not set the owners.
func (s *Store) missedOf(ctx context.Context, h *hook.Hook, l *hook.Log) ([]hook.Firing, error) {
	var all []hook.Firing
	add := func(m *index.MessageRow, path string) {
		if m.Created.After(h.Created) && s.core.Clock.Time().Sub(m.Created) <= hook.Kept && !l.Ran(h, m.ID) {
			all = append(all, hook.Firing{Hook: *h, ID: m.ID, Path: path})
		}
	}
	each := s.eachReceived
	if h.Event == hook.AfterSend {
		each = s.eachSent
	}
	err := each(ctx, h, add)
	slices.Reverse(all)
	return all, err
}

// eachReceived calls fn for every message in the inbox that is newer than the hook, newest first.
func (s *Store) eachReceived(ctx context.Context, h *hook.Hook, fn func(m *index.MessageRow, path string)) error {
	q := index.InboxQuery{
		Project: h.Project,
		Agent:   h.Mailbox,
		Since:   h.Created,
		Limit:   MaxPage,
	}
	for {
		rows, _, err := s.core.Index.Inbox(ctx, q)
		if err != nil || len(rows) == 0 {
			return err
		}
		for i := range rows {
			fn(&rows[i].MessageRow, rows[i].CopyPath)
		}
		q.Before = rows[len(rows)-1].Cursor
	}
}

// eachSent calls fn for every message in the outbox, sorted by file name in descending order.
func (s *Store) eachSent(ctx context.Context, h *hook.Hook, fn func(m *index.MessageRow, path string)) error {
	q := index.BoxQuery{
		Project: h.Project,
		Agent:   h.Mailbox,
		Sent:    true,
		Limit:   MaxPage,
	}
	for {
		rows, err := s.core.Index.Box(ctx, q)
		if err != nil || len(rows) == 0 {
			return err
		}
		for i := range rows {
			fn(&rows[i].MessageRow, rows[i].CopyPath)
		}
		q.Before = rows[len(rows)-1].ID // unlike an offset, an id skips no rows if other rows are removed
	}
}

// Fire decides whether the hook of a firing runs. If so, Fire durably records in the log that the hook has run, and
// returns the run, which the caller must execute once. Otherwise, run is nil and why contains the reason. A hook does
// not run if the hook or the copy no longer exists, if the mailbox and the hook have different owners, or if the server
// cannot run commands as that owner. It also does not run if the message is untrusted, from another machine, or older
// than the hook, or if the hook has already run for the message. If Fire cannot decide, it returns ErrUnavailable or,
// like Firings, ctx's error.
func (s *Store) Fire(ctx context.Context, f hook.Firing, l *hook.Log) (run *hook.Run, why string, err error) {
	if why, err = s.hookStands(ctx, &f); why != "" || err != nil {
		return nil, why, err
	}
	p := s.known(f.Hook.Project)
	m, data, err := p.mail.ReadMessage(f.Path, f.ID)
	var bad *tree.FormatError
	switch {
	case tree.FaultOf(err) == tree.FaultGone, errors.As(err, &bad):
		return nil, "the message was deleted or is no longer valid", nil
	case err != nil:
		return nil, "", refusal.Disk(err)
	}
	_, sealed := s.core.VerifiedHere(m)
	if !sealed && p.mail.IsShared() {
		return nil, "this server did not deliver the message: it may have come from another machine", nil
	}
	trusted := p.mail.Trust(m, f.Hook.Mailbox) == Trusted
	if why := f.WhyNot(hook.Copy{Message: m, Sealed: sealed, Trusted: trusted}, s.core.Clock.Time()); why != "" {
		return nil, why, nil
	}
	first, err := l.Begin(&f.Hook, f.ID)
	if err != nil {
		return nil, "", err
	}
	if !first {
		return nil, "the hook already ran for this message", nil
	}
	return &hook.Run{
		Firing:    f,
		File:      filepath.Join(p.mail.Tree.Dir(), filepath.FromSlash(f.Path)),
		Data:      data,
		MessageID: s.core.Domains.MessageIDOf(m),
		From:      s.core.Domains.Of(m.From),
		To:        s.core.Domains.Join(m.To),
		Subject:   m.Subject,
		Date:      m.Created.Format(time.RFC3339Nano),

		Attachments: p.Post.AttachedFiles(m),
	}, "", nil
}

// hookStands checks whether the hook of a firing still exists and may run, and sets the mailbox's current owner. It
// returns the reason that the hook may not run, or "" if it may.
func (s *Store) hookStands(ctx context.Context, f *hook.Firing) (why string, err error) {
	one := []hook.Firing{*f}
	if err := s.fillOwners(ctx, one); err != nil {
		return "", err
	}
	if s.known(f.Hook.Project) == nil {
		return hook.Gone, nil
	}
	f.Owner = one[0].Owner
	if why, err := s.core.Hooks.Stands(f); why != "" || err != nil {
		return why, err
	}
	if !s.core.RunsAs(f.Owner) {
		return "this server cannot run commands as the owner of the mailbox", nil
	}
	return "", nil
}
