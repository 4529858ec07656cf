package access

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"

	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/post"
	"mailtree/maildir/refusal"
	"mailtree/maildir/sending"
	"mailtree/maildir/writer"
)

// View provides the parts of a project that one OS user may access. A View's errors reveal nothing about the other
// parts of the project. A View is safe for concurrent use.
type View struct {
	mail   *core.Mail
	post   *post.Post
	sender *sending.Sender
	marks  func(agent string) Marks
	by     core.Caller
	origin format.Origin
}

// Marks sets marks on an agent's deliveries.
type Marks interface {
	SetRead(ctx context.Context, id string, read bool) (*index.Delivery, error)
}

// Parts contains the parts of a project that a View needs.
type Parts struct {
	Mail   *core.Mail
	Post   *post.Post
	Sender *sending.Sender
	Marks  func(agent string, origin format.Origin) Marks
}

// New returns the View of a project for the given OS user. Messages that the user writes get the given origin.
func New(p Parts, by core.Caller, origin format.Origin) *View {
	marks := func(agent string) Marks { return p.Marks(agent, origin) }
	return &View{p.Mail, p.Post, p.Sender, marks, by, origin}
}

// Mailbox is one agent's mailbox.
type Mailbox struct {
	Name       string `json:"name"`
	InboxPath  string `json:"inbox_path"` // absolute path of the inbox folder
	OutboxPath string `json:"sent_path"`  // absolute path of the folder with sent messages
	index.Counts
	Owner      int  `json:"-"`          // owner's uid, or NoOwner
	Registered bool `json:"registered"` // false for a folder without a valid profile
}

// Mailboxes lists the mailboxes that the caller owns, sorted by name. For root, it lists all mailboxes.
func (v *View) Mailboxes(ctx context.Context) ([]Mailbox, error) {
	rows, err := v.mail.Store.Index.Agents(ctx, v.mail.Slug)
	if err != nil {
		return nil, err
	}
	owners, err := v.mail.Store.Owners.LoadOwners()
	if err != nil {
		return nil, err
	}
	out := []Mailbox{}
	for _, a := range rows {
		if m := v.mailbox(&a, v.mail.Owner(owners, a.Name)); v.by.Owns(m.Owner) {
			out = append(out, m)
		}
	}
	return out, nil
}

func (v *View) mailbox(a *index.AgentRow, owner int) Mailbox {
	dir := filepath.Join(v.mail.Tree.Dir(), format.AgentsDir, a.Name)
	return Mailbox{
		Name:       a.Name,
		InboxPath:  filepath.Join(dir, format.InboxDir),
		OutboxPath: filepath.Join(dir, format.OutboxDir),
		Counts:     a.Counts,
		Owner:      owner,
		Registered: a.HasProfile,
	}
}

// CreateMailbox creates an agent with exactly the given name, owned by the caller. If the caller already owns such an
// agent, CreateMailbox only assigns the agent the address that matches its name (see Receives). It returns ErrInvalid
// if the name is invalid, or if a mailbox of the caller in another project already has the address. It returns
// ErrDenied if the agent or the address has another owner or no owner. It returns ErrTooLarge if the caller is a guest
// that already owns MaxGuestMailboxes mailboxes.
func (v *View) CreateMailbox(ctx context.Context, name string) (*Mailbox, error) {
	if why := format.CheckName(name); why != "" || format.ServerName(name) || post.ReservedMailbox(name) {
		return nil, &refusal.Error{
			What:  refusal.MailboxNameUnusable,
			Field: refusal.Mailbox,
			Name:  name,
			Why:   cmp.Or(why, "it is reserved for the server"),
		}
	}
	tx := &writer.Tx{
		Op:    writer.Op{Verb: history.VerbRegister, Agent: name, Summary: name + " (mailbox)"},
		Facts: []string{core.NameFact(name), "mailboxes of " + strconv.Itoa(v.by.UID)},
		Sure:  true,
	}
	tx.Plan = func(g *writer.Group) error {
		if holder, err := v.mail.NameHolder(g.Ctx, name); err != nil {
			return err
		} else if holder != "" {
			if err := v.checkOwner(holder, name); err != nil {
				return err
			}
			return v.giveAddress(g.Ctx, name)
		}
		if err := v.refuseAddress(g.Ctx, name); err != nil {
			return err
		}
		if err := v.mail.Store.MayOwnMore(g.Ctx, v.by); err != nil {
			return err
		}
		_, err := v.mail.PlanAgent(g, tx, format.Profile{Name: name}, v.by.UID)
		return err
	}
	// Naming creates one mailbox at a time, so two projects cannot both get the address.
	err := v.post.Office().Naming(func() error { return v.mail.Writer.Do(ctx, tx) })
	if err != nil {
		return nil, err
	}
	return v.Mailbox(ctx, name)
}

// giveAddress assigns an agent the address that matches its name. The caller must be allowed to use the agent. It
// returns any error from refuseAddress.
func (v *View) giveAddress(ctx context.Context, name string) error {
	if receives, err := v.post.Receives(ctx, name); receives || err != nil {
		return err
	}
	if err := v.refuseAddress(ctx, name); err != nil {
		return err
	}
	owner, err := v.mail.OwnerOf(name)
	if err != nil {
		return err
	}
	return v.mail.Store.Owners.Set(v.mail.Slug+"/"+name, owner)
}

// checkOwner returns an error if an existing mailbox does not belong to the caller.
func (v *View) checkOwner(existing, name string) error {
	owner, err := v.mail.OwnerOf(existing)
	owned := v.by.Owns(owner)
	switch {
	case err != nil:
		return err
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

// Exists reports whether a mailbox with the given name exists, no matter who owns it. The contract of hook_create
// allows every caller to learn this.
func (v *View) Exists(ctx context.Context, name string) (bool, error) {
	row, err := v.mail.Store.Index.Agent(ctx, v.mail.Slug, name)
	return row != nil, err
}

// Mailbox returns the mailbox with the given name. It returns ErrNotFound if the mailbox does not exist, and ErrDenied
// if the mailbox does not belong to the caller.
func (v *View) Mailbox(ctx context.Context, name string) (*Mailbox, error) {
	row, err := v.mail.Store.Index.Agent(ctx, v.mail.Slug, name)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, v.mail.UnknownTo(ctx, v.by, refusal.Mailbox, name)
	}
	owner, err := v.mail.OwnerOf(name)
	if err != nil {
		return nil, err
	}
	if !v.by.Owns(owner) {
		return nil, &refusal.Error{What: refusal.MailboxNotYours, Field: refusal.Mailbox, Name: name}
	}
	m := v.mailbox(row, owner)
	return &m, nil
}

// DeleteMailbox deletes an agent's whole folder, its hooks, its trusted senders and the record of its owner. The
// agent's mail remains in the history and in other agents' folders. DeleteMailbox returns the mailbox as it was before
// deletion. If the mailbox contains mail and force is not set, DeleteMailbox deletes nothing and returns both the
// mailbox and ErrConflict. It returns ErrUnavailable if other programs' edits in the folder cannot be committed first,
// or any error from Mailbox.
func (v *View) DeleteMailbox(ctx context.Context, name string, force bool) (*Mailbox, error) {
	m, err := v.Mailbox(ctx, name)
	if err != nil {
		return nil, err
	}
	tx := &writer.Tx{Op: writer.Op{Verb: "delete-mailbox", Agent: name, Summary: name}, Alone: true}
	tx.Plan = func(g *writer.Group) error {
		var paths []string
		if m, err = v.Mailbox(g.Ctx, name); err != nil {
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
		err := v.mail.Tree.Walk(g.Ctx, format.AgentsDir+"/"+name, func(path string, d fs.DirEntry) error {
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
	if err := v.mail.Writer.Do(ctx, tx); err != nil {
		return m, err
	}
	return m, v.removeOwner(ctx, name)
}

// removeOwner removes the owner, hooks and trusted senders of a deleted agent. If a new agent already has the same
// name, removeOwner removes nothing, because the new agent has its own owner.
func (v *View) removeOwner(ctx context.Context, name string) error {
	tx := &writer.Tx{Op: writer.Op{Verb: "delete-mailbox", Agent: name}, Facts: []string{core.NameFact(name)}}
	tx.Plan = func(g *writer.Group) error { // this operation changes no files
		if row, err := v.mail.Store.Index.Agent(g.Ctx, v.mail.Slug, name); err != nil || row != nil {
			return err
		}
		dropped := errors.Join(v.mail.Store.Hooks.DeleteMailbox(v.mail.Slug, name), v.mail.Store.Trusted.Drop(v.mail.Slug, name))
		return errors.Join(dropped, v.mail.Store.Owners.Set(v.mail.Slug+"/"+name, core.NoOwner))
	}
	err := v.mail.Writer.Do(context.WithoutCancel(ctx), tx)
	if errors.Is(err, writer.ErrStopped) { // the mailbox is already deleted, and a new mailbox gets its own owner
		return nil
	}
	return err
}

// refuseAddress returns an error if another project's mailbox already has the address of a new mailbox.
func (v *View) refuseAddress(ctx context.Context, name string) error {
	other, agent, err := v.mail.Store.MailboxAt(ctx, name)
	switch {
	case errors.Is(err, refusal.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	owner, err := other.OwnerOf(agent)
	switch {
	case err != nil:
		return err
	case !v.by.Owns(owner):
		return &refusal.Error{What: refusal.MailboxNotYours, Field: refusal.Mailbox, Name: name}
	}
	return &refusal.Error{
		What:  refusal.MailboxNameUnusable,
		Field: refusal.Mailbox,
		Name:  name,
		Why:   "your mailbox in project " + other.Name() + " already has this address",
	}
}
