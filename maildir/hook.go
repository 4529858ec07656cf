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
	s := b.box.p.mail.Store
	if !s.RunsAs(b.Owner) {
		return nil, &Error{
			What: refusal.Unavailable("Hooks run as the owner of the mailbox (uid {count}), which this server cannot do: it runs as uid " +
				"{count 2}, not as root."),
			Counts: []int{b.Owner, s.User()},
		}
	}
	last, err := s.Index.LastChange(ctx)
	if err != nil {
		return nil, err
	}
	owners, err := s.Owners.LoadOwners()
	if err != nil {
		return nil, err
	}
	h.Project, h.Mailbox, h.Owner, h.Created, h.After = b.box.p.mail.Slug, b.Name, &b.Owner, s.Clock.Time(), last
	return s.Hooks.Create(h, func(o *hook.Hook) bool {
		return o.Project == b.box.p.mail.Slug && b.box.p.mail.Owner(owners, o.Mailbox) == b.Owner
	})
}

// SettleHooks resets hooks that were created later than now, by the clock or by the feed, because the clock
// was set back or the index was lost since. Otherwise they would not run until that time comes again. It
// returns ErrUnavailable.
func (s *Store) SettleHooks(ctx context.Context) error {
	future, err := s.core.Hooks.Redate(func() (hook.Present, error) {
		last, err := s.LastChange(ctx)
		return hook.Present{Now: s.core.Clock.Time(), Opened: s.core.Opened, Change: last}, err
	})
	for i := range future {
		s.core.Log.Warn("a hook is from a time that is yet to come: from now on it counts from the start of this server",
			"hook", future[i].Key(), "created", future[i].Created)
	}
	return err
}

// HooksFrom returns the mark after which changes may concern a hook; last, the newest change, if there is
// no hook. It returns ErrUnavailable.
func (s *Store) HooksFrom(last int64) (int64, error) { return s.core.Hooks.OldestMark(last) }

// OpenHookLog is hook.OpenLog for the store. A store may have one log open at a time.
func (s *Store) OpenHookLog() (*hook.Log, error) { return hook.OpenLog(s.core.Root, s.core.Now) }
