package maildir

import (
	"context"

	"mailtree/maildir/hook"
	"mailtree/maildir/refusal"
)

// CreateHook adds a hook to the mailbox. h sets Event, Cmd, Name ("" for a derived name), Timeout and
// FireOnUntrusted. If the same hook exists it changes nothing. It returns the hook as stored. It returns
// ErrInvalid, ErrTooLarge, ErrExist if the owner has another hook of that name, and ErrUnavailable if the
// server cannot run commands as the mailbox's owner.
func (b *OpenBox) CreateHook(ctx context.Context, h hook.Hook) (*hook.Hook, error) {
	if err := h.CheckDraft(); err != nil {
		return nil, err
	}
	s := b.box.p.store
	if !s.runsAs(b.Owner) {
		return nil, &Error{
			What: refusal.Unavailable("Hooks run as the owner of the mailbox (uid {count}), which this server cannot do: it runs as uid " +
				"{count 2}, not as root."),
			Counts: []int{b.Owner, s.cfg.User()},
		}
	}
	last, err := s.LastChange(ctx)
	if err != nil {
		return nil, err
	}
	owners, err := s.owners.loadOwners()
	if err != nil {
		return nil, err
	}
	h.Project, h.Mailbox, h.Owner, h.Created, h.After = b.box.p.Slug, b.Name, &b.Owner, s.clock.Time(), last
	return s.hooks.Create(h, func(o *hook.Hook) bool {
		return o.Project == b.box.p.Slug && b.box.p.owner(owners, o.Mailbox) == b.Owner
	})
}

// runsAs reports whether this server can run commands as the user uid.
func (s *Store) runsAs(uid int) bool { return uid >= 0 && (s.cfg.User() == 0 || s.cfg.User() == uid) }

// Hooks lists, by mailbox and name, the hooks on one mailbox, or with "" on all mailboxes that the caller
// owns. It returns the errors of Mailbox.
func (p *Project) Hooks(ctx context.Context, mailbox string, by Caller) ([]hook.Hook, error) {
	if mailbox != "" {
		if _, err := p.Mailbox(ctx, mailbox, by); err != nil {
			return nil, err
		}
	}
	owners, err := p.store.owners.loadOwners()
	if err != nil {
		return nil, err
	}
	return p.store.hooks.Select(func(h *hook.Hook) bool {
		return h.Project == p.Slug && (mailbox == "" || h.Mailbox == mailbox) && by.owns(p.owner(owners, h.Mailbox))
	})
}

// DeleteHook removes a hook of the caller by name; a run in progress goes on. It returns ErrNotFound, also
// for another user's hook, and ErrConflict if root names a hook that several users have and root has none
// of that name.
func (p *Project) DeleteHook(_ context.Context, name string, by Caller) error {
	owners, err := p.store.owners.loadOwners()
	if err != nil {
		return err
	}
	mayDelete := func(h *hook.Hook) bool { return h.Project == p.Slug && by.owns(p.owner(owners, h.Mailbox)) }
	isOwn := func(h *hook.Hook) bool { return p.owner(owners, h.Mailbox) == by.UID }
	return p.store.hooks.Delete(name, mayDelete, isOwn)
}

// SettleHooks resets hooks that were created later than now, by the clock or by the feed, because the clock
// was set back or the index was lost since. Otherwise they would not run until that time comes again. It
// returns ErrUnavailable.
func (s *Store) SettleHooks(ctx context.Context) error {
	future, err := s.hooks.Redate(func() (hook.Present, error) {
		last, err := s.LastChange(ctx)
		return hook.Present{Now: s.clock.Time(), Opened: s.opened, Change: last}, err
	})
	for i := range future {
		s.cfg.Log.Warn("a hook is from a time that is yet to come: from now on it counts from the start of this server",
			"hook", future[i].Key(), "created", future[i].Created)
	}
	return err
}

// HooksFrom returns the mark after which changes may concern a hook; last, the newest change, if there is
// no hook. It returns ErrUnavailable.
func (s *Store) HooksFrom(last int64) (int64, error) { return s.hooks.OldestMark(last) }

// OpenHookLog is hook.OpenLog for the store. A store may have one log open at a time.
func (s *Store) OpenHookLog() (*hook.Log, error) { return hook.OpenLog(s.cfg.Root, s.cfg.Now) }
