package post

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// Post connects a project's mail with other domains: its mailboxes and their owners, mail from other domains, and mail
// to them. It is safe for concurrent use.
type Post struct {
	mail   *core.Mail
	office *Office
}

// Office contains the state that all Posts of a store share. The zero value is ready to use.
type Office struct {
	emails emails
	naming sync.Mutex // held while a mailbox is created
}

// Naming calls f while no other mailbox in the store is being created.
func (o *Office) Naming(f func() error) error {
	o.naming.Lock()
	defer o.naming.Unlock()
	return f()
}

// New returns the Post of a project.
func New(mail *core.Mail, office *Office) *Post { return &Post{mail, office} }

// Office returns the state that this Post shares with the store's other Posts.
func (p *Post) Office() *Office { return p.office }

// ReservedMailbox reports whether the name is reserved for mail that belongs to no mailbox.
func ReservedMailbox(name string) bool { return name == "catchall" || name == "aimx-catchall" }

// Receives reports whether the agent receives mail from other domains at the address with the agent's name. This is the
// case if owners.json lists the agent's project for the name, or if the agent is in the default project and no other
// project has the address. Receives returns ErrUnavailable if it cannot read a file that it needs.
func (p *Post) Receives(ctx context.Context, agent string) (bool, error) {
	other, holder, err := p.mail.Store.MailboxAt(ctx, agent)
	if errors.Is(err, refusal.ErrNotFound) {
		return false, nil
	}
	return other == p.mail && holder == agent, err
}

// HasMailbox reports whether the address with the given local part has a mailbox in the store at root. trees contains
// the store's trees by slug. HasMailbox reads only owners.json and these trees. It returns ErrUnavailable, or errors
// from reading the trees. See Store.MailboxAt.
func HasMailbox(ctx context.Context, root string, trees map[string]*tree.Tree, local string) (bool, error) {
	owners := core.NewOwners(root)
	slugs, err := owners.ProjectsOf(local)
	if err != nil {
		return false, err
	}
	for _, slug := range slugs {
		if t := trees[slug]; t != nil {
			if has, err := hasAgent(ctx, t, local); has || err != nil {
				return has, err
			}
		}
	}
	return false, nil
}

// hasAgent reports whether the folder of an agent with that name, ignoring case, contains a file of a known kind.
func hasAgent(ctx context.Context, t *tree.Tree, name string) (has bool, err error) {
	err = t.Walk(ctx, format.AgentsDir, func(path string, d fs.DirEntry) error {
		switch pl := format.Locate(path); pl.Kind {
		case format.KindIgnored, format.KindOther, format.KindDraft:
		default:
			has = has || d.Type().IsRegular() && strings.EqualFold(pl.Agent, name)
		}
		return nil
	})
	return has, tree.IgnoreGone(err)
}
