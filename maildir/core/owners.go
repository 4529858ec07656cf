package core

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/registry"
	"mailtree/maildir/storedir"
	"mailtree/maildir/writer"
)

// owners is the store's file owners.json: {"<slug>/<agent>": uid}. The user may edit the file while a server is
// running.
type owners struct {
	file *registry.File[map[string]int]
}

// NewOwners returns the owners of the store whose folder is root.
func NewOwners(root string) owners {
	return owners{registry.NewJSON[map[string]int](root, registry.JSONFile{
		Name: storedir.OwnersFile,
		Wrong: refusal.Unavailable("The store's owners.json is {why}. Replace it with a valid file; until then " +
			"no mailbox has an owner."),
		Damaged: refusal.Unavailable("The store's owners.json is damaged ({why}). Fix it; until then no mailbox " +
			"has an owner."),
		TooLarge: refusal.TooLarge("The store's owners.json would be {count} bytes, over the limit of {limit}: " +
			"delete mailboxes that you no longer need."),
	})}
}

// LoadOwners returns the owners, which the caller must not change. If it returns ErrUnavailable, callers must assume
// that no OS user owns any agent.
func (o *owners) LoadOwners() (map[string]int, error) {
	all, err := o.file.Load()
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Set changes the owner of one mailbox. The uid NoOwner removes the entry.
func (o *owners) Set(key string, uid int) error {
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

// ProjectsOf returns the projects that may contain the mailbox for a local part, in lookup order. It returns any
// error from LoadOwners.
func (o *owners) ProjectsOf(local string) (slugs []string, err error) {
	all, err := o.LoadOwners()
	if err != nil {
		return nil, err
	}
	for key := range all {
		if slug, name, _ := strings.Cut(key, "/"); strings.EqualFold(name, local) && slug != DefaultProject {
			slugs = append(slugs, slug)
		}
	}
	slices.Sort(slugs)
	return append(slugs, DefaultProject), nil
}

// Owner returns the uid of the agent's owner. An agent without an entry in owners.json belongs to the store's user. If
// the entry is negative, Owner returns NoOwner.
func (c *Mail) Owner(owners map[string]int, agent string) int {
	if uid, ok := owners[c.Slug+"/"+agent]; ok {
		return max(uid, NoOwner)
	}
	return c.Store.User()
}

// OwnerOf is like Owner, but loads the current owners. It returns any error from LoadOwners.
func (c *Mail) OwnerOf(agent string) (int, error) {
	owners, err := c.Store.Owners.LoadOwners()
	if err != nil {
		return NoOwner, err
	}
	return c.Owner(owners, agent), nil
}

// DefaultProject is the slug of the project for requests that specify no project. That project has no human key. See
// docs/reference/tools.md, "postal".
const DefaultProject = "default"

// PlanAgent plans a new agent with the given profile, which belongs to the OS user uid (see SetOwner). PlanAgent adds
// the current time and this machine to the profile, and returns the profile.
func (c *Mail) PlanAgent(g *writer.Group, tx *writer.Tx, p format.Profile, uid int) (format.Profile, error) {
	p.Inception, p.Machine = g.Now.Truncate(time.Microsecond), c.Store.Machine()
	tx.Create(format.ProfilePath(p.Name), format.FormatProfile(p))
	return p, c.SetOwner(p.Name, uid)
}

// SetOwner sets the owner of a new agent to the OS user uid. The uid NoOwner means the store's user. If an earlier
// agent of that name had a different owner, SetOwner deletes that agent's hooks and trusted senders. SetOwner must be
// called before the agent is created, so that no other user ever has access to the agent.
func (c *Mail) SetOwner(name string, uid int) error {
	key := c.Slug + "/" + name
	owners, err := c.Store.Owners.LoadOwners()
	if err != nil {
		return err
	}
	old, said := owners[key]
	before, now := c.Owner(owners, name), uid
	if uid == NoOwner {
		now = c.Store.User()
	}
	if before != now {
		// Delete hooks and trusted senders first. A hook without an owner runs as the mailbox's owner, for mail from
		// senders that the mailbox trusts.
		if err := errors.Join(c.Store.Hooks.DeleteMailbox(c.Slug, name), c.Store.Trusted.Drop(c.Slug, name)); err != nil {
			return err
		}
	}
	if said == (uid != NoOwner) && (!said || old == uid) {
		return nil
	}
	return c.Store.Owners.Set(key, uid)
}
