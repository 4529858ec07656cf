package post

import (
	"context"
	"path/filepath"
	"slices"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/hook"
)

// Hooks lists, by mailbox and name, the hooks on one mailbox, or with "" on all mailboxes that the caller
// owns. It returns the errors of Mailbox.
func (p *Post) Hooks(ctx context.Context, mailbox string, by core.Caller) ([]hook.Hook, error) {
	if mailbox != "" {
		if _, err := p.Mailbox(ctx, mailbox, by); err != nil {
			return nil, err
		}
	}
	owners, err := p.mail.Store.Owners.LoadOwners()
	if err != nil {
		return nil, err
	}
	return p.mail.Store.Hooks.Select(func(h *hook.Hook) bool {
		return h.Project == p.mail.Slug && (mailbox == "" || h.Mailbox == mailbox) && by.Owns(p.mail.Owner(owners, h.Mailbox))
	})
}

// DeleteHook removes a hook of the caller by name; a run in progress goes on. It returns ErrNotFound, also
// for another user's hook, and ErrConflict if root names a hook that several users have and root has none
// of that name.
func (p *Post) DeleteHook(_ context.Context, name string, by core.Caller) error {
	owners, err := p.mail.Store.Owners.LoadOwners()
	if err != nil {
		return err
	}
	mayDelete := func(h *hook.Hook) bool { return h.Project == p.mail.Slug && by.Owns(p.mail.Owner(owners, h.Mailbox)) }
	isOwn := func(h *hook.Hook) bool { return p.mail.Owner(owners, h.Mailbox) == by.UID }
	return p.mail.Store.Hooks.Delete(name, mayDelete, isOwn)
}

// AttachedFiles returns the attachments of a message with absolute paths. It leaves out those whose path is not
// that of their content, and those that are no regular file, because a file made by hand, or a link in the tree,
// may name any file of this machine.
func (p *Post) AttachedFiles(m *format.Message) []format.Attachment {
	all := slices.DeleteFunc(slices.Clone(m.Attachments), func(a format.Attachment) bool {
		if a.SHA1 == "" || format.AttachmentSum(a.Path) != a.SHA1 {
			return true
		}
		st, err := p.mail.Tree.Stat(a.Path)
		return err != nil || !st.Mode.IsRegular()
	})
	for i := range all {
		all[i].Path = filepath.Join(p.mail.Tree.Dir(), filepath.FromSlash(all[i].Path))
	}
	return all
}
