package core

import (
	"cmp"
	"log/slog"
	"path/filepath"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/projectformat"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// identity contains the facts about a project from project.json and shared.json.
type identity struct {
	own    string    // the path in project.json; empty if there is none
	key    string    // the path of the code base on this machine; empty if neither file contains one
	made   time.Time // when the project was created; zero if project.json contains no time
	shared bool      // the mail is shared with other machines
	refuse error     // why the server must not use the project (see projectformat.Refuse), or nil
}

// HumanKey returns the absolute path that identifies the project, or "" if there is none. The path comes from
// shared.json or, if that file contains none, from project.json. It changes when a user edits either file.
func (c *Mail) HumanKey() string { return c.is.Load().key }

// OwnKey returns the path in project.json. Other machines may change that path if the project is shared.
func (c *Mail) OwnKey() string { return c.is.Load().own }

// IsNamed reports whether name is the project's current name, or the path at which the project was created. If the
// path of the code base has changed, earlier mail still belongs to this project.
func (c *Mail) IsNamed(name string) bool { return name == c.Name() || format.Slug(name) == c.Slug }

// Created returns the time when the project was created, or the zero time if project.json contains no time.
func (c *Mail) Created() time.Time { return c.is.Load().made }

// Refused returns an error if this server must no longer use the project, because a user or Git has set a newer format
// in project.json. Otherwise, it returns nil.
func (c *Mail) Refused() error { return c.is.Load().refuse }

// IsShared reports whether the project's mail is shared with other machines.
func (c *Mail) IsShared() bool { return c.is.Load().shared }

// Reread rereads project.json and shared.json, and reports whether the project's identity has changed. If there is a
// machine fault, Reread returns it and changes nothing. Only one call may run at a time.
func (c *Mail) Reread() (changed bool, err error) {
	is, err := c.Store.readIdentity(c.Slug, c.Tree, c.Keeper.Log)
	if err != nil {
		return false, err
	}
	return *c.is.Swap(is) != *is, nil
}

// readIdentity reads project.json in a project's tree, and shared.json next to the tree. It treats a missing or invalid
// file as empty. If the project is shared but shared.json contains no path, readIdentity adds the path from
// project.json, because other machines may change project.json. It returns machine faults.
func (s *Store) readIdentity(slug string, t *tree.Tree, log *slog.Logger) (*identity, error) {
	shared, err := storedir.LoadShared(s.Root, slug)
	if err := tree.MachineFault(err); err != nil {
		return nil, err
	}
	if err != nil {
		log.Error("the project is not shared with other machines because its sync settings cannot be read", "error", err)
	}
	is := &identity{shared: shared.On}
	data, _, err := t.Read(format.ProjectFile, format.MaxSmall)
	if err := tree.MachineFault(err); err != nil {
		return nil, err
	}
	if err == nil {
		if is.own, is.made, err = format.ParseProject(data); err != nil {
			log.Warn("project.json is not valid; ignoring the path in it", "error", err)
		}
	}
	n, err := format.ProjectFormat(data)
	if is.refuse = projectformat.Refuse(n, err, cmp.Or(shared.Key, is.own, slug), s.Format); is.refuse != nil {
		is.key = cmp.Or(shared.Key, is.own)
		return is, nil
	}
	if shared.On && shared.Key == "" && is.own != "" {
		shared.Key = is.own
		if err := storedir.SaveShared(filepath.Dir(storedir.Repo(s.Root, slug)), shared); err != nil {
			log.Warn("cannot write the project's path to shared.json", "error", err)
		}
	}
	is.key = cmp.Or(shared.Key, is.own)
	return is, nil
}
