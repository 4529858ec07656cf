package maildir

import (
	"context"

	"mailtree/maildir/refusal"
)

// MailboxAt returns the mailbox of the address with the given local part at the store's domain. The mailbox is the
// agent of that name in the project that owners.json assigns to the mailbox. If owners.json assigns no project, the
// mailbox is the agent of that name in the default project. MailboxAt ignores the case of the name. MailboxAt returns
// ErrNotFound if there is no such mailbox, and ErrUnavailable for machine faults.
func (s *Store) MailboxAt(ctx context.Context, local string) (p *Project, agent string, err error) {
	c, agent, err := s.core.MailboxAt(ctx, local)
	if err != nil {
		return nil, "", err
	}
	if p = s.known(c.Slug); p == nil { // the project was removed meanwhile
		return nil, "", &Error{What: refusal.UnknownMailbox, Field: refusal.Mailbox, Name: local}
	}
	return p, agent, nil
}
