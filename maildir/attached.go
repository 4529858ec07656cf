package maildir

import (
	"context"
	"fmt"
	"slices"

	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
)

// OpenAttachmentFor opens an attachment for a user, by its SHA-1 in hex. Root and the store's user may open every
// attachment. Another user may open those that a message in a mailbox of theirs lists; to them every other
// attachment does not exist. The caller closes it. It returns the errors of attachment.Open.
func (p *Project) OpenAttachmentFor(ctx context.Context, sum string, by Caller) (*attachment.Opened, error) {
	if p.store.guest(by) {
		owners, err := p.store.owners.loadOwners()
		if err != nil {
			return nil, err
		}
		agents, err := p.store.index.Attached(ctx, p.Slug, sum)
		if err != nil {
			return nil, fmt.Errorf("look up who has attachment %s: %w", format.Printable(sum), err)
		}
		if !slices.ContainsFunc(agents, func(a string) bool { return by.owns(p.owner(owners, a)) }) {
			return nil, attachment.Missing(p.name(), sum)
		}
	}
	return p.OpenAttachment(sum, attachment.MaxStored)
}
