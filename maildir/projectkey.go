package maildir

import (
	"errors"
	"path/filepath"
	"time"

	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
)

// Every tool call names a project. Finding the Git working tree that contains the project's path takes one stat call
// per parent folder. Therefore the store caches the meanings of keys (Store.meant).

// keyMeaning is the cached result of storedir.Resolver.ResolveKey for a key.
type keyMeaning struct {
	human, slug string
	until       time.Time
}

// keyFresh is how long a key's cached meaning is used. The meaning can change, because a user can link the working tree
// to another one or replace a symbolic link. maxKeys is the maximum number of cached keys; a key has at most 4096
// bytes.
const (
	keyFresh = 5 * time.Second
	maxKeys  = 1024
)

// resolve is storedir.Resolver.ResolveKey for a key of this store. It reads no file if the key was resolved to an open
// project less than keyFresh ago and no project has been opened or moved since. Therefore resolve may notice a change
// to the code base up to keyFresh late.
func (s *Store) resolve(key string) (human, slug string, err error) {
	now := s.core.Now()
	s.mu.Lock()
	meant := s.meant // a meaning that was found before a change must not be added after the change
	m, ok := meant[key]
	s.mu.Unlock()
	if ok && now.Before(m.until) {
		return m.human, m.slug, nil
	}
	r := storedir.Resolver{Root: s.core.Root, Scope: s.core.Scope, Names: s.projectNames}
	human, slug, err = r.ResolveKey(key)
	var e *Error
	if errors.As(err, &e) && e.What == refusal.ProjectKeyRelative {
		return "", "", s.unknownProject(e)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && human != "" && s.projects[slug] != nil {
		if len(meant) >= maxKeys {
			clear(meant)
		}
		meant[key] = keyMeaning{human, slug, now.Add(keyFresh)}
	}
	return human, slug, err
}

// forgetKeys drops the cached meanings of keys, because a key may now mean another project.
func (s *Store) forgetKeys() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meant = map[string]keyMeaning{}
}

// projectNames returns the names of the open projects, and of those that could not be opened. Without the latter, a call
// could create a second project for a path.
func (s *Store) projectNames() ([]storedir.ProjectName, error) {
	var all []storedir.ProjectName
	for _, p := range s.Projects() {
		all = append(all, storedir.ProjectName{Slug: p.mail.Slug, HumanKey: p.mail.HumanKey(), Created: p.mail.Created()})
	}
	left := s.LeftOut()
	if len(left) == 0 {
		return all, nil
	}
	names, err := storedir.ProjectNames(s.core.Root)
	for _, n := range names {
		if left[n.Slug] != nil {
			all = append(all, n)
		}
	}
	return all, err
}

// KeyNote returns a note if a key of this project names a folder below the project's folder. Otherwise it returns
// nil.
func (p *Project) KeyNote(key string) *Error {
	top := p.mail.HumanKey()
	if folderBelow(top, key) == "" {
		return nil
	}
	return &Error{
		What: refusal.Note("{field} {name} is inside the code base {=other}, so it means that code base's project: " +
			"claim paths are relative to {=other}."),
		Field: refusal.Project,
		Name:  filepath.Clean(storedir.PlainKey(key)),
		Other: top,
	}
}

// MakingNote returns a note for a caller that has created the project with a key, if the result may be a surprise. This
// is the case if the project covers every path, or if the key names a linked worktree or a folder that does not exist
// on this machine. Otherwise MakingNote returns "".
func (p *Project) MakingNote(key string) string {
	given := filepath.Clean(storedir.PlainKey(key))
	if p.mail.HumanKey() == "/" {
		return "This project covers every path on this machine, not one code base. If you meant a code base, call " +
			"again with its absolute path."
	}
	if linked, err := repo.LinkedWorkTree(given, p.mail.HumanKey()); err == nil && linked != "" {
		return linked + " is a linked worktree of " + p.mail.HumanKey() + ": both share this project."
	}
	return p.MissingNote(key)
}

// MissingNote returns a note if the folder that the key names does not exist, and "" otherwise.
func (p *Project) MissingNote(key string) string {
	missing := p.MissingFolder(key)
	if missing == "" {
		return ""
	}
	return "No such folder on this machine: " + missing + ". The project exists anyway. If you meant a different folder, " +
		"call again with its absolute path."
}

// KeyFolder returns the path of the folder that a key names, relative to the project's folder. It returns "" if the
// key names no folder below the project's folder.
func (p *Project) KeyFolder(key string) string { return folderBelow(p.mail.HumanKey(), key) }

// folderBelow is KeyFolder for the project whose folder is top.
func folderBelow(top, key string) string {
	given := filepath.Clean(storedir.PlainKey(key))
	if !filepath.IsAbs(given) || given == top {
		return ""
	}
	place, err := repo.PlaceOf(given)
	if err != nil || place.Path == top || !inside(place.Path, top) {
		return ""
	}
	return place.Path[len(top)+1:]
}
