package maildir

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"strconv"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/registry"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// A mailbox is an agent seen as an address with an owner: the operating system's user who may read and
// write it. Owners are recorded in the store's owners.json, never in a tree that a `git pull` could change.
// An agent that is not in it (every agent that another toolset made) belongs to the store's user, who can
// read its files anyway. See docs/email.md, "Mailboxes and users".

// Caller is the operating system's user who asks, known by peer credentials.
type Caller struct {
	UID  int
	Root bool // may do everything
}

// NoOwner is the Owner of an agent without an owner, because owners.json says so: only root may use it.
const NoOwner = -1

// MaxGuestMailboxes is how many mailboxes of a store a user may own who is neither the store's user nor
// root.
const MaxGuestMailboxes = 100

// owns reports whether the caller may use things of the user owner.
func (by Caller) owns(owner int) bool { return by.Root || by.UID >= 0 && by.UID == owner }

// guest reports whether the caller is neither the store's user nor root.
func (s *Store) guest(by Caller) bool { return !by.Root && by.UID != s.cfg.User() }

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
func (p *Project) Mailboxes(ctx context.Context, by Caller) ([]Mailbox, error) {
	rows, err := p.store.index.Agents(ctx, p.Slug)
	if err != nil {
		return nil, err
	}
	owners, err := p.store.owners.loadOwners()
	if err != nil {
		return nil, err
	}
	out := []Mailbox{}
	for _, a := range rows {
		if m := p.mailbox(&a, owners); by.owns(m.Owner) {
			out = append(out, m)
		}
	}
	return out, nil
}

func (p *Project) mailbox(a *index.AgentRow, owners map[string]int) Mailbox {
	dir := filepath.Join(p.Tree.Dir(), format.AgentsDir, a.Name)
	return Mailbox{
		Name:       a.Name,
		InboxPath:  filepath.Join(dir, format.InboxDir),
		OutboxPath: filepath.Join(dir, format.OutboxDir),
		Counts:     a.Counts,
		Owner:      p.owner(owners, a.Name),
		Registered: a.HasProfile,
	}
}

// owner returns the uid of the agent's owner; NoOwner if it has none.
func (p *Project) owner(owners map[string]int, agent string) int {
	if uid, ok := owners[p.Slug+"/"+agent]; ok {
		return max(uid, NoOwner)
	}
	return p.store.cfg.User()
}

// ReservedMailbox reports whether the name is kept for mail that no mailbox takes.
func ReservedMailbox(name string) bool { return name == "catchall" || name == "aimx-catchall" }

// CreateMailbox creates an agent of exactly that name, owned by the caller. If the caller already owns an agent of
// that name, it only gives the agent the address of that name (see Receives). It returns ErrInvalid for the name,
// also if its address is that of the caller's mailbox in another project, ErrDenied if the agent or the address
// has another owner or none, and ErrTooLarge for a guest who owns MaxGuestMailboxes.
func (p *Project) CreateMailbox(ctx context.Context, name string, by Caller) (*Mailbox, error) {
	if why := format.CheckName(name); why != "" || format.ServerName(name) || ReservedMailbox(name) {
		return nil, &Error{
			What:  refusal.MailboxNameUnusable,
			Field: refusal.Mailbox,
			Name:  name,
			Why:   cmp.Or(why, "reserved"),
		}
	}
	tx := &writer.Tx{
		Op:    writer.Op{Verb: "register", Agent: name, Summary: name + " (mailbox)"},
		Facts: []string{nameFact(name), "mailboxes of " + strconv.Itoa(by.UID)},
		Sure:  true,
	}
	tx.Plan = func(g *writer.Group) error {
		if holder, err := p.nameHolder(g.Ctx, name); err != nil {
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
		if err := p.store.mayOwnMore(g.Ctx, by); err != nil {
			return err
		}
		tx.Create(format.ProfilePath(name), format.FormatProfile(format.Profile{Name: name, Inception: g.Now, Machine: p.store.machine()}))
		return p.give(name, by.UID)
	}
	p.store.naming.Lock() // or two projects would get mailboxes with one address
	err := p.Writer.Do(ctx, tx)
	p.store.naming.Unlock()
	if err != nil {
		return nil, err
	}
	return p.Mailbox(ctx, name, by)
}

// giveAddress gives an agent that the caller may use the address of its name. It returns the errors of
// refuseAddress.
func (p *Project) giveAddress(ctx context.Context, name string, by Caller) error {
	if receives, err := p.Receives(ctx, name); receives || err != nil {
		return err
	}
	if err := p.refuseAddress(ctx, name, by); err != nil {
		return err
	}
	owners, err := p.store.owners.loadOwners()
	if err != nil {
		return err
	}
	return p.store.owners.set(p.Slug+"/"+name, p.owner(owners, name))
}

// Receives reports whether mail from other domains to the address of an agent's name comes to that agent. It does
// if owners.json names the agent's project for it, or if the agent is in the default project and no other
// project has the address. It returns ErrUnavailable.
func (p *Project) Receives(ctx context.Context, agent string) (bool, error) {
	other, holder, err := p.store.MailboxAt(ctx, agent)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return other == p && holder == agent, err
}

// mayOwnMore refuses a guest who already owns as many mailboxes as allowed. Mailboxes whose folder is gone
// do not count.
func (s *Store) mayOwnMore(ctx context.Context, by Caller) error {
	if !s.guest(by) {
		return nil
	}
	owners, err := s.owners.loadOwners()
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
		a, err := s.index.Agent(ctx, slug, name)
		if err != nil {
			return err
		}
		if a != nil {
			there++
		}
	}
	if there >= MaxGuestMailboxes {
		return &Error{
			What: refusal.TooLarge("User {=name} owns {count} mailboxes, and the limit is {limit}: delete one that is no longer needed, " +
				"then try again."),
			Name:   strconv.Itoa(by.UID),
			Counts: []int{there},
			Limit:  MaxGuestMailboxes,
		}
	}
	return nil
}

// give sets the owner of a new agent to the user uid, or with NoOwner to the store's user, whoever owned an
// earlier agent of that name, and drops the hooks and trusted senders of the earlier owner. It is called before the agent
// exists, so no one gets access too early.
func (p *Project) give(name string, uid int) error {
	key := p.Slug + "/" + name
	owners, err := p.store.owners.loadOwners()
	if err != nil {
		return err
	}
	old, said := owners[key]
	before, now := p.owner(owners, name), uid
	if uid == NoOwner {
		now = p.store.cfg.User()
	}
	if before != now {
		// First: a hook without an owner runs as the mailbox's owner, for mail of senders whom the mailbox trusts.
		if err := errors.Join(p.store.hooks.DeleteMailbox(p.Slug, name), p.store.trusted.drop(p.Slug, name)); err != nil {
			return err
		}
	}
	if said == (uid != NoOwner) && (!said || old == uid) {
		return nil
	}
	return p.store.owners.set(key, uid)
}

// mayUse refuses an existing mailbox that is not the caller's.
func (p *Project) mayUse(existing, name string, by Caller) error {
	owners, err := p.store.owners.loadOwners()
	if err != nil {
		return err
	}
	owned := by.owns(p.owner(owners, existing))
	switch {
	case existing == name && owned:
		return nil
	case owned:
		return &Error{
			What:  refusal.MailboxNameCase,
			Field: refusal.Mailbox,
			Name:  name,
			Other: existing,
		}
	}
	return &Error{What: refusal.MailboxNotYours, Field: refusal.Mailbox, Name: name}
}

// Mailbox returns the mailbox of that name. It returns ErrNotFound, and ErrDenied if it is not the
// caller's.
func (p *Project) Mailbox(ctx context.Context, name string, by Caller) (*Mailbox, error) {
	row, err := p.store.index.Agent(ctx, p.Slug, name)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, p.unknownAgent(ctx, refusal.Mailbox, name)
	}
	owners, err := p.store.owners.loadOwners()
	if err != nil {
		return nil, err
	}
	m := p.mailbox(row, owners)
	if !by.owns(m.Owner) {
		return nil, &Error{What: refusal.MailboxNotYours, Field: refusal.Mailbox, Name: name}
	}
	return &m, nil
}

// DeleteMailbox removes an agent's whole folder, its hooks, trusted senders and owner; its mail stays in the history and
// in other agents' folders. It returns the mailbox as it was, also with ErrConflict. Without force, it
// refuses a mailbox with mail with ErrConflict. It returns ErrNotFound, ErrDenied, ErrConflict, and
// ErrUnavailable if edits by others in the folder cannot be committed first.
func (p *Project) DeleteMailbox(ctx context.Context, name string, force bool, by Caller) (*Mailbox, error) {
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
			return &Error{
				What:   refusal.MailboxNotEmpty,
				Field:  refusal.Mailbox,
				Name:   name,
				Counts: []int{m.Total, m.Sent},
			}
		}
		err := p.Tree.Walk(g.Ctx, format.AgentsDir+"/"+name, func(path string, d fs.DirEntry) error {
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
	if err := p.Writer.Do(ctx, tx); err != nil {
		return m, err
	}
	return m, p.disown(ctx, name)
}

// disown drops the owner, hooks and trusted senders of a deleted agent, unless an agent of that name exists again, which
// then has an owner of its own.
func (p *Project) disown(ctx context.Context, name string) error {
	tx := &writer.Tx{Op: writer.Op{Verb: "delete-mailbox", Agent: name}, Facts: []string{nameFact(name)}}
	tx.Plan = func(g *writer.Group) error { // writes nothing
		if row, err := p.store.index.Agent(g.Ctx, p.Slug, name); err != nil || row != nil {
			return err
		}
		dropped := errors.Join(p.store.hooks.DeleteMailbox(p.Slug, name), p.store.trusted.drop(p.Slug, name))
		return errors.Join(dropped, p.store.owners.set(p.Slug+"/"+name, NoOwner))
	}
	err := p.Writer.Do(context.WithoutCancel(ctx), tx)
	if errors.Is(err, writer.ErrStopped) { // the mailbox is deleted all the same, and creating an agent sets its owner
		return nil
	}
	return err
}

// owners is the store's owners.json: {"<slug>/<agent>": uid}. A person may edit it while a server runs.
type owners struct {
	file *registry.File[map[string]int]
}

func newOwners(root string) owners {
	file := registry.JSONFile{
		Name:    storedir.OwnersFile,
		Wrong:   refusal.Unavailable("The store's owners.json is {why}: put the right file there; until then no mailbox has an owner."),
		Damaged: refusal.Unavailable("The store's owners.json is damaged ({why}): mend it; until then no mailbox has an owner."),
		TooLarge: refusal.TooLarge("The store's owners.json would have {count} bytes, over the limit of {limit}: delete mailboxes that " +
			"are no longer needed."),
	}
	return owners{registry.New(filepath.Join(root, storedir.OwnersFile), registry.Format[map[string]int]{
		Limit: registry.MaxJSON,
		Parse: func(data []byte, _ tree.FileStat) (all map[string]int, err error) {
			err = file.Decode(data, &all)
			return all, err
		},
		Print:  func(all map[string]int) ([]byte, error) { return file.Encode(all) },
		Refuse: file.Refuse,
	})}
}

// loadOwners returns the owners, which the caller must not change. It returns ErrUnavailable; no user is
// then an owner.
func (o *owners) loadOwners() (map[string]int, error) {
	all, err := o.file.Load()
	if err != nil {
		return nil, err
	}
	return all, nil
}

// set changes one owner; NoOwner removes it.
func (o *owners) set(key string, uid int) error {
	return o.file.Change(func(all map[string]int) (map[string]int, error) {
		changed := map[string]int{}
		maps.Copy(changed, all)
		if uid == NoOwner {
			delete(changed, key)
		} else {
			changed[key] = uid
		}
		return changed, nil
	})
}
