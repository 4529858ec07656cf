package access

import (
	"context"
	"fmt"
	"slices"

	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
)

// OpenAttachment opens the attachment with the given SHA-1 (in hex) for the view's OS user. Root and the store's user
// may open every attachment. Other users may open only attachments of messages in their own mailboxes. For any other
// attachment, OpenAttachment returns the same error as for a missing attachment. OpenAttachment also returns any error
// from attachment.Open. The caller must close the attachment.
func (v *View) OpenAttachment(ctx context.Context, sum string) (*attachment.Opened, error) {
	if v.mail.Store.IsForeignUser(v.by) {
		owners, err := v.mail.Store.Owners.LoadOwners()
		if err != nil {
			return nil, err
		}
		agents, err := v.mail.Store.Index.Attached(ctx, v.mail.Slug, sum)
		if err != nil {
			return nil, fmt.Errorf("cannot look up the agents that have attachment %s: %w", format.Printable(sum), err)
		}
		if !slices.ContainsFunc(agents, func(a string) bool { return v.by.Owns(v.mail.Owner(owners, a)) }) {
			return nil, attachment.Missing(v.mail.Name(), sum)
		}
	}
	return attachment.Open(v.mail.Tree, v.mail.Name(), sum, attachment.MaxStored)
}
