package post

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mailtree/maildir/attachment"
	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Post is the mail of a project with the world: its mailboxes and their owners, mail from other domains, and mail to them.
// It is safe for concurrent use.
type Post struct {
	mail   *core.Mail
	office *Office
}

// Office is what the posts of a store share. The zero value is ready to use.
type Office struct {
	emails emails
	naming sync.Mutex // held while a mailbox is made
}

// New returns the post of a project.
func New(mail *core.Mail, office *Office) *Post { return &Post{mail, office} }

// Mailbox is one agent's mailbox.
type Mailbox struct {
	Name       string `json:"name"`
	InboxPath  string `json:"inbox_path"` // folder of the inbox; absolute path
	OutboxPath string `json:"sent_path"`  // folder of what was sent
	index.Counts
	Owner      int  `json:"-"`          // uid, or NoOwner
	Registered bool `json:"registered"` // false for a folder without a valid profile
}

// Mailboxes lists by name the mailboxes that the caller owns; root sees all.
func (p *Post) Mailboxes(ctx context.Context, by core.Caller) ([]Mailbox, error) {
	rows, err := p.mail.Store.Index.Agents(ctx, p.mail.Slug)
	if err != nil {
		return nil, err
	}
	owners, err := p.mail.Store.Owners.LoadOwners()
	if err != nil {
		return nil, err
	}
	out := []Mailbox{}
	for _, a := range rows {
		if m := p.mailbox(&a, owners); by.Owns(m.Owner) {
			out = append(out, m)
		}
	}
	return out, nil
}

func (p *Post) mailbox(a *index.AgentRow, owners map[string]int) Mailbox {
	dir := filepath.Join(p.mail.Tree.Dir(), format.AgentsDir, a.Name)
	return Mailbox{
		Name:       a.Name,
		InboxPath:  filepath.Join(dir, format.InboxDir),
		OutboxPath: filepath.Join(dir, format.OutboxDir),
		Counts:     a.Counts,
		Owner:      p.mail.Owner(owners, a.Name),
		Registered: a.HasProfile,
	}
}

// ReservedMailbox reports whether the name is kept for mail that no mailbox takes.
func ReservedMailbox(name string) bool { return name == "catchall" || name == "aimx-catchall" }

// CreateMailbox creates an agent of exactly that name, owned by the caller. If the caller already owns an agent of
// that name, it only gives the agent the address of that name (see Receives). It returns ErrInvalid for the name,
// also if its address is that of the caller's mailbox in another project, ErrDenied if the agent or the address
// has another owner or none, and ErrTooLarge for a guest who owns MaxGuestMailboxes.
func (p *Post) CreateMailbox(ctx context.Context, name string, by core.Caller) (*Mailbox, error) {
	if why := format.CheckName(name); why != "" || format.ServerName(name) || ReservedMailbox(name) {
		return nil, &refusal.Error{
			What:  refusal.MailboxNameUnusable,
			Field: refusal.Mailbox,
			Name:  name,
			Why:   cmp.Or(why, "reserved"),
		}
	}
	tx := &writer.Tx{
		Op:    writer.Op{Verb: "register", Agent: name, Summary: name + " (mailbox)"},
		Facts: []string{core.NameFact(name), "mailboxes of " + strconv.Itoa(by.UID)},
		Sure:  true,
	}
	tx.Plan = func(g *writer.Group) error {
		if holder, err := p.mail.NameHolder(g.Ctx, name); err != nil {
			return err
		} else if holder != "" {
			if err := p.mayUse(holder, name, by); err != nil {
				return err
			}
			return p.giveAddress(g.Ctx, name, by)
		}
		if err := p.refuseAddress(g.Ctx, name, by); err != nil {
			return err
		}
		if err := p.mail.Store.MayOwnMore(g.Ctx, by); err != nil {
			return err
		}
		tx.Create(format.ProfilePath(name), format.FormatProfile(format.Profile{Name: name, Inception: g.Now, Machine: p.mail.Store.Machine()}))
		return p.mail.GiveOwner(name, by.UID)
	}
	p.office.naming.Lock() // or two projects would get mailboxes with one address
	err := p.mail.Writer.Do(ctx, tx)
	p.office.naming.Unlock()
	if err != nil {
		return nil, err
	}
	return p.Mailbox(ctx, name, by)
}

// giveAddress gives an agent that the caller may use the address of its name. It returns the errors of
// refuseAddress.
func (p *Post) giveAddress(ctx context.Context, name string, by core.Caller) error {
	if receives, err := p.Receives(ctx, name); receives || err != nil {
		return err
	}
	if err := p.refuseAddress(ctx, name, by); err != nil {
		return err
	}
	owners, err := p.mail.Store.Owners.LoadOwners()
	if err != nil {
		return err
	}
	return p.mail.Store.Owners.Set(p.mail.Slug+"/"+name, p.mail.Owner(owners, name))
}

// Receives reports whether mail from other domains to the address of an agent's name comes to that agent. It does
// if owners.json names the agent's project for it, or if the agent is in the default project and no other
// project has the address. It returns ErrUnavailable.
func (p *Post) Receives(ctx context.Context, agent string) (bool, error) {
	other, holder, err := p.mail.Store.MailboxAt(ctx, agent)
	if errors.Is(err, refusal.ErrNotFound) {
		return false, nil
	}
	return other == p.mail && holder == agent, err
}

// mayUse refuses an existing mailbox that is not the caller's.
func (p *Post) mayUse(existing, name string, by core.Caller) error {
	owners, err := p.mail.Store.Owners.LoadOwners()
	if err != nil {
		return err
	}
	owned := by.Owns(p.mail.Owner(owners, existing))
	switch {
	case existing == name && owned:
		return nil
	case owned:
		return &refusal.Error{
			What:  refusal.MailboxNameCase,
			Field: refusal.Mailbox,
			Name:  name,
			Other: existing,
		}
	}
	return &refusal.Error{What: refusal.MailboxNotYours, Field: refusal.Mailbox, Name: name}
}

// Mailbox returns the mailbox of that name. It returns ErrNotFound, and ErrDenied if it is not the
// caller's.
func (p *Post) Mailbox(ctx context.Context, name string, by core.Caller) (*Mailbox, error) {
	row, err := p.mail.Store.Index.Agent(ctx, p.mail.Slug, name)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, p.mail.UnknownAgent(ctx, refusal.Mailbox, name)
	}
	owners, err := p.mail.Store.Owners.LoadOwners()
	if err != nil {
		return nil, err
	}
	m := p.mailbox(row, owners)
	if !by.Owns(m.Owner) {
		return nil, &refusal.Error{What: refusal.MailboxNotYours, Field: refusal.Mailbox, Name: name}
	}
	return &m, nil
}

// DeleteMailbox removes an agent's whole folder, its hooks, trusted senders and owner; its mail stays in the history and
// in other agents' folders. It returns the mailbox as it was, also with ErrConflict. Without force, it
// refuses a mailbox with mail with ErrConflict. It returns ErrNotFound, ErrDenied, ErrConflict, and
// ErrUnavailable if edits by others in the folder cannot be committed first.
func (p *Post) DeleteMailbox(ctx context.Context, name string, force bool, by core.Caller) (*Mailbox, error) {
	m, err := p.Mailbox(ctx, name, by)
	if err != nil {
		return nil, err
	}
	tx := &writer.Tx{Op: writer.Op{Verb: "delete-mailbox", Agent: name, Summary: name}, Alone: true}
	tx.Plan = func(g *writer.Group) error {
		var paths []string
		if m, err = p.Mailbox(g.Ctx, name, by); err != nil {
			return err
		}
		if !force && m.Total+m.Sent > 0 {
			return &refusal.Error{
				What:   refusal.MailboxNotEmpty,
				Field:  refusal.Mailbox,
				Name:   name,
				Counts: []int{m.Total, m.Sent},
			}
		}
		err := p.mail.Tree.Walk(g.Ctx, format.AgentsDir+"/"+name, func(path string, d fs.DirEntry) error {
			if d.Type().IsRegular() {
				paths = append(paths, path)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return g.Remove(tx, paths...)
	}
	if err := p.mail.Writer.Do(ctx, tx); err != nil {
		return m, err
	}
	return m, p.disown(ctx, name)
}

// disown drops the owner, hooks and trusted senders of a deleted agent, unless an agent of that name exists again, which
// then has an owner of its own.
func (p *Post) disown(ctx context.Context, name string) error {
	tx := &writer.Tx{Op: writer.Op{Verb: "delete-mailbox", Agent: name}, Facts: []string{core.NameFact(name)}}
	tx.Plan = func(g *writer.Group) error { // writes nothing
		if row, err := p.mail.Store.Index.Agent(g.Ctx, p.mail.Slug, name); err != nil || row != nil {
			return err
		}
		dropped := errors.Join(p.mail.Store.Hooks.DeleteMailbox(p.mail.Slug, name), p.mail.Store.Trusted.Drop(p.mail.Slug, name))
		return errors.Join(dropped, p.mail.Store.Owners.Set(p.mail.Slug+"/"+name, core.NoOwner))
	}
	err := p.mail.Writer.Do(context.WithoutCancel(ctx), tx)
	if errors.Is(err, writer.ErrStopped) { // the mailbox is deleted all the same, and creating an agent sets its owner
		return nil
	}
	return err
}

// refuseAddress refuses the name of a new mailbox whose address another project's mailbox has.
func (p *Post) refuseAddress(ctx context.Context, name string, by core.Caller) error {
	other, agent, err := p.mail.Store.MailboxAt(ctx, name)
	switch {
	case errors.Is(err, refusal.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	owners, err := p.mail.Store.Owners.LoadOwners()
	if err != nil {
		return err
	}
	if !by.Owns(other.Owner(owners, agent)) {
		return &refusal.Error{What: refusal.MailboxNotYours, Field: refusal.Mailbox, Name: name}
	}
	return &refusal.Error{
		What:  refusal.MailboxNameUnusable,
		Field: refusal.Mailbox,
		Name:  name,
		Why:   "its address is that of your mailbox in the project " + other.Name(),
	}
}

// HasMailbox reports whether the address of that local part has a mailbox in the store whose folder is root and
// whose trees are given, by the files alone: see Store.MailboxAt. It returns ErrUnavailable and the errors of
// reading the trees.
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

// hasAgent reports whether a file of a known kind lies below the folder of an agent of that name, in any case.
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

// OpenAttachmentFor opens an attachment for a user, by its SHA-1 in hex. Root and the store's user may open every
// attachment. Another user may open those that a message in a mailbox of theirs lists; to them every other
// attachment does not exist. The caller closes it. It returns the errors of attachment.Open.
func (p *Post) OpenAttachmentFor(ctx context.Context, sum string, by core.Caller) (*attachment.Opened, error) {
	if p.mail.Store.Guest(by) {
		owners, err := p.mail.Store.Owners.LoadOwners()
		if err != nil {
			return nil, err
		}
		agents, err := p.mail.Store.Index.Attached(ctx, p.mail.Slug, sum)
		if err != nil {
			return nil, fmt.Errorf("look up who has attachment %s: %w", format.Printable(sum), err)
		}
		if !slices.ContainsFunc(agents, func(a string) bool { return by.Owns(p.mail.Owner(owners, a)) }) {
			return nil, attachment.Missing(p.mail.Name(), sum)
		}
	}
	return attachment.Open(p.mail.Tree, p.mail.Name(), sum, attachment.MaxStored)
}
