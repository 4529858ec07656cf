package core

import (
	"context"
	"strconv"
	"strings"

	"mailtree/maildir/refusal"
)

// MailboxAt finds the mailbox for the local part of an email address. It returns the project's mail and the agent's
// name. See maildir.Store.MailboxAt.
func (s *Store) MailboxAt(ctx context.Context, local string) (c *Mail, agent string, err error) {
	slugs, err := s.Owners.ProjectsOf(local)
	if err != nil {
		return nil, "", err
	}
	for _, slug := range slugs {
		if err := s.Projects.LeftOut()[slug]; err != nil {
			return nil, "", err
		}
		if c = s.Projects.Mail(slug); c == nil {
			continue
		}
		if agent, err = c.NameHolder(ctx, local); agent != "" || err != nil {
			return c, agent, err
		}
		if err := c.Sure(); err != nil {
			return nil, "", err
		}
	}
	return nil, "", &refusal.Error{What: refusal.UnknownMailbox, Field: refusal.Mailbox, Name: local}
}

// MayOwnMore returns an error if the caller is a guest that already owns the maximum number of mailboxes. Mailboxes
// whose folder was removed do not count.
func (s *Store) MayOwnMore(ctx context.Context, by Caller) error {
	if !s.IsForeignUser(by) {
		return nil
	}
	owners, err := s.Owners.LoadOwners()
	if err != nil {
		return err
	}
	var mine []string
	for key, uid := range owners {
		if uid == by.UID {
			mine = append(mine, key)
		}
	}
	if len(mine) < MaxGuestMailboxes {
		return nil
	}
	there := 0
	for _, key := range mine {
		slug, name, _ := strings.Cut(key, "/")
		a, err := s.Index.Agent(ctx, slug, name)
		if err != nil {
			return err
		}
		if a != nil {
			there++
		}
	}
	if there >= MaxGuestMailboxes {
		return &refusal.Error{
			What: refusal.TooLarge("User {=name} owns {count} mailboxes, and the limit is {limit}: delete a " +
				"mailbox that you no longer need, then try again."),
			Name:   strconv.Itoa(by.UID),
			Counts: []int{there},
			Limit:  MaxGuestMailboxes,
		}
	}
	return nil
}

// MaxGuestMailboxes is the maximum number of mailboxes in a store that one OS user may own. The limit does not apply
// to root or the store's user.
const MaxGuestMailboxes = 100
