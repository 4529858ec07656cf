package codebase

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"mailtree/maildir/core"
	"mailtree/maildir/editing"
	"mailtree/maildir/folders"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
)

// Codebase is the code base of a project: the folder that names the project, and other folders of the same repository.
// It is safe for concurrent use.
type Codebase struct {
	all  *Codebases
	mail *core.Mail
}

// Covers reports whether dir, an absolute path, is in the project's folder or in another folder of the code base.
func (c *Codebase) Covers(dir string) bool {
	top := c.mail.HumanKey()
	if top == "" {
		return false
	}
	place, err := c.placeOf(filepath.Clean(dir))
	if err != nil { // the next call checks again
		return false
	}
	if isIn(place.Path, top) || isIn(place.Bare, top) {
		return true
	}
	real, err := filepath.EvalSymlinks(top)
	return err == nil && isIn(place.Path, real)
}

// Below returns the path of the folder that a key names, relative to the project's folder. If the key does not name a
// folder below the project's folder, it returns "".
func (c *Codebase) Below(key string) string { return c.below(c.mail.HumanKey(), key) }

// below is like Below, but for the project whose folder is top.
func (c *Codebase) below(top, key string) string {
	given := filepath.Clean(storedir.PlainKey(key))
	if !filepath.IsAbs(given) || given == top {
		return ""
	}
	place, err := c.placeOf(given)
	if err != nil || place.Path == top || !isIn(place.Path, top) {
		return ""
	}
	return place.Path[len(top)+1:]
}

// File returns the location of an edited file, on disk and in the repository. path is absolute. ok is false if the file
// is not in the code base, or if that cannot be determined.
func (c *Codebase) File(path string) (f editing.File, ok bool) {
	top := c.mail.HumanKey()
	disk, err := repo.WithoutLinks(filepath.Clean(path))
	if err != nil || top == "" {
		return f, false
	}
	places, err := c.all.store.Places()
	if err != nil {
		return f, false
	}
	rel, ok, err := places.Relative(top, disk)
	return editing.File{Disk: disk, Path: rel}, ok && err == nil
}

// placeOf maps a path in any folder of a code base to the same path in the folder that names the project.
func (c *Codebase) placeOf(path string) (repo.Place, error) {
	places, err := c.all.store.Places()
	if err != nil {
		return repo.Place{}, err
	}
	return places.PlaceOf(path)
}

func isIn(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// Missing returns the path that a key names (for a slug, the project's path) if no folder exists at that path. The key
// may contain a typo, or it may name a folder on another machine. If the folder exists, Missing returns "".
func (c *Codebase) Missing(key string) string {
	path := filepath.Clean(storedir.PlainKey(key))
	if !filepath.IsAbs(path) {
		path = c.mail.HumanKey()
	}
	if path == "" || !IsMissing(path) {
		return ""
	}
	return path
}

// NoteBelow returns a note if a key of this project names a folder below the project's folder. Otherwise it returns
// nil.
func (c *Codebase) NoteBelow(key string) *refusal.Error {
	top := c.mail.HumanKey()
	if c.below(top, key) == "" {
		return nil
	}
	return &refusal.Error{
		What: refusal.Note("{field} {name} is inside the code base {=other}, so the call applies to that code base's project. In " +
			"claims, relative paths are relative to {name}; responses show them relative to {=other}."),
		Field: refusal.Project,
		Name:  filepath.Clean(storedir.PlainKey(key)),
		Other: top,
	}
}

// NoteMade returns a note about the project just created for key, if the result may surprise the caller. This is the
// case if the project covers every path, or if the key names another folder of the code base or a folder that does not
// exist on this machine. Otherwise NoteMade returns "".
func (c *Codebase) NoteMade(key string) string {
	given, top := filepath.Clean(storedir.PlainKey(key)), c.mail.HumanKey()
	if top == "/" {
		return "This project covers every path on this machine, not one code base. If you meant a code base, call " +
			"again with its absolute path."
	}
	if linked, err := repo.Folders(nil).Around(given, top); err == nil && linked != "" {
		return linked + " is a linked worktree of " + top + ": both share this project."
	}
	if places, err := c.all.store.Places(); err == nil {
		if other, err := places.Around(given, top); err == nil && other != "" {
			return other + " is another folder of " + top + ": both share this project."
		}
	}
	return c.NoteMissing(key)
}

// NoteMissing returns a note if the folder that the key names does not exist, and "" otherwise.
func (c *Codebase) NoteMissing(key string) string {
	missing := c.Missing(key)
	if missing == "" {
		return ""
	}
	return "No such folder on this machine: " + missing + ". The project exists anyway. If you meant a different folder, " +
		"call again with its absolute path."
}

// Relatives returns the names of two other projects whose repositories have the same first commit as this project's
// repository: fork, whose repository has a different remote, and moved, whose folder no longer exists. A name is empty
// if there is no such project. Relatives reads the map of folders and does not run Git.
func (c *Codebase) Relatives() (fork, moved string) {
	for _, r := range c.all.relatives(c.mail) {
		if name := r.mail.Name(); r.gone {
			moved = cmp.Or(moved, name)
		} else {
			fork = cmp.Or(fork, name)
		}
	}
	return fork, moved
}

// Visited is called when an agent of the project works in the folder that the key names. If the folder is in a linked
// worktree, Visited adds the worktree to the map of folders, so that the path still identifies the project after the
// worktree is removed. Once per server run, Visited also records the identity of the project's repository, so that
// the project is recognized if its folder is moved. Visited logs errors.
func (c *Codebase) Visited(ctx context.Context, key string) {
	log := c.all.store.Log
	if err := c.recordRepository(context.WithoutCancel(ctx)); err != nil {
		log.Warn("cannot record a project's repository", "project", c.mail.Slug, "error", err)
	}
	dir := storedir.PlainKey(key)
	if !filepath.IsAbs(dir) || dir == c.mail.HumanKey() {
		return
	}
	if err := c.recordWorktree(dir); err != nil {
		log.Warn("cannot record a worktree", "project", c.mail.Slug, "folder", dir, "error", err)
	}
}

func (c *Codebase) recordRepository(ctx context.Context) error {
	if _, tried := c.all.noted.LoadOrStore(c.mail.Slug, true); tried || c.mail.HumanKey() == "" {
		return nil
	}
	return c.all.finder().Note(ctx, folders.Project{Slug: c.mail.Slug, Folder: c.mail.HumanKey()})
}

func (c *Codebase) recordWorktree(dir string) error {
	top, err := repo.Folders(nil).Around(dir, c.mail.HumanKey())
	if err != nil || top == "" {
		return err
	}
	line := folders.Line{Kind: folders.Worktree, Project: c.mail.Slug, Day: c.all.store.Now(), Folder: top}
	known, err := c.all.store.Folders.Load()
	if err != nil || known.Has(line) {
		return err
	}
	if err := c.all.store.Folders.Change(func(m *folders.Map) (*folders.Map, error) { return m.With(line), nil }); err != nil {
		return fmt.Errorf("cannot write the map of folders: %w", err)
	}
	return nil
}
