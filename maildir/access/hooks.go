package access

import (
	"context"

	"mailtree/maildir/core"
	"mailtree/maildir/hook"
	"mailtree/maildir/refusal"
)

// Hooks lists the hooks on one mailbox, sorted by name. If mailbox is "", it lists the hooks on all mailboxes that the
// caller owns, sorted by mailbox and name. It returns any error from Mailbox.
func (v *View) Hooks(ctx context.Context, mailbox string) ([]hook.Hook, error) {
	if mailbox != "" {
		if _, err := v.Mailbox(ctx, mailbox); err != nil {
			return nil, err
		}
	}
	owners, err := v.mail.Store.Owners.LoadOwners()
	if err != nil {
		return nil, err
	}
	return v.mail.Store.Hooks.Select(func(h *hook.Hook) bool {
		return h.Project == v.mail.Slug && (mailbox == "" || h.Mailbox == mailbox) && v.by.Owns(v.mail.Owner(owners, h.Mailbox))
	})
}

// DeleteHook deletes one of the caller's hooks by name. It does not stop a run that is in progress. DeleteHook returns
// ErrNotFound if the caller has no such hook, even if another user does. It returns ErrConflict if the caller is root,
// several users have a hook with that name, and root has none.
func (v *View) DeleteHook(_ context.Context, name string) error {
	owners, err := v.mail.Store.Owners.LoadOwners()
	if err != nil {
		return err
	}
	mayDelete := func(h *hook.Hook) bool { return h.Project == v.mail.Slug && v.by.Owns(v.mail.Owner(owners, h.Mailbox)) }
	isOwn := func(h *hook.Hook) bool { return v.mail.Owner(owners, h.Mailbox) == v.by.UID }
	return v.mail.Store.Hooks.Delete(name, mayDelete, isOwn)
}

// CreateHook adds a hook to the mailbox and returns the stored hook. The caller sets h.Event, h.Cmd, h.Name (empty to
// derive a name), h.Timeout and h.FireOnUntrusted. If the same hook already exists, CreateHook changes nothing. It
// returns ErrInvalid or ErrTooLarge if h is invalid. It returns ErrExist if the owner has another hook with that name,
// and ErrUnavailable if the server cannot run commands as the mailbox's owner.
func (b *Box) CreateHook(ctx context.Context, h hook.Hook) (*hook.Hook, error) {
	if err := h.CheckDraft(); err != nil {
		return nil, err
	}
	s := b.v.mail.Store
	if b.Owner == core.NoOwner {
		return nil, &refusal.Error{What: refusal.Unavailable("Hooks run as the mailbox's owner, but this mailbox has no owner. " +
			"Add the owner's uid to the mailbox's entry in the store's owners.json.")}
	}
	if !s.RunsAs(b.Owner) {
		return nil, &refusal.Error{
			What: refusal.Unavailable("Hooks run as the mailbox's owner (uid {count}). This server runs as uid {count 2}, and only " +
				"root can switch to another user."),
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
	h.Project, h.Mailbox, h.Owner, h.Created, h.After = b.v.mail.Slug, b.Name, &b.Owner, s.Clock.Time(), last
	return s.Hooks.Create(h, func(o *hook.Hook) bool {
		return o.Project == b.v.mail.Slug && b.v.mail.Owner(owners, o.Mailbox) == b.Owner
	})
}
