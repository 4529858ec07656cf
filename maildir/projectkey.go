package maildir

import (
	"errors"
	"path/filepath"
	"time"

	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
)

// Every tool call names a project, and finding the Git work tree of its path takes a stat call for each
// folder above it. So the store remembers the meanings of keys (Store.meant).

// keyMeaning is the result of storedir.Resolver.ResolveKey for a key.
type keyMeaning struct {
	human, slug string
	until       time.Time
}

// keyFresh is how long the meaning of a key is used; meanwhile someone may link the work tree to another
// one, or replace a symbolic link. maxKeys is how many keys are remembered; a key has at most 4096 bytes.
const (
	keyFresh = 5 * time.Second
	maxKeys  = 1024
)

// resolve is storedir.Resolver.ResolveKey for a key of this store. It reads no file if the same key was
// resolved to an open project less than keyFresh ago and no project was opened since. So a change of the
// code base may be noticed keyFresh late.
func (s *Store) resolve(key string) (human, slug string, err error) {
	now := s.core.Now()
	s.mu.Lock()
	m, ok := s.meant[key]
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
		if len(s.meant) >= maxKeys {
			clear(s.meant)
		}
		s.meant[key] = keyMeaning{human, slug, now.Add(keyFresh)}
	}
	return human, slug, err
}

// projectNames returns the names of the open projects.
func (s *Store) projectNames() ([]storedir.ProjectName, error) {
	var all []storedir.ProjectName
	for _, p := range s.Projects() {
		all = append(all, storedir.ProjectName{Slug: p.mail.Slug, HumanKey: p.mail.HumanKey(), Created: p.mail.Created()})
	}
	return all, nil
}

// KeyNote says that a key, which means this project, names a folder below the project's folder; nil if it
// does not.
func (p *Project) KeyNote(key string) *Error {
	if p.KeyFolder(key) == "" {
		return nil
	}
	return &Error{
		What: refusal.Note("{field} {name} is inside the code base {=other}, so it means that code base's project: " +
			"paths of claims are relative to {=other}."),
		Field: refusal.Project,
		Name:  filepath.Clean(storedir.PlainKey(key)),
		Other: p.mail.HumanKey(),
	}
}

// MakingNote tells a caller that creates the project with a key what may be unexpected: the project is for
// every path, or the key names a linked work tree, or no folder of this machine. It returns "" if there is
// nothing to tell.
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

// MissingNote says that no folder lies where the key names one; "" if one does.
func (p *Project) MissingNote(key string) string {
	missing := p.MissingFolder(key)
	if missing == "" {
		return ""
	}
	return "No such folder on this machine: " + missing + ". The project exists anyway. If you meant another one, " +
		"call again with its absolute path."
}

// KeyFolder returns the folder below the project's folder that a key of the project names, relative to the
// project's folder; "" if it names none.
func (p *Project) KeyFolder(key string) string {
	given := filepath.Clean(storedir.PlainKey(key))
	if !filepath.IsAbs(given) || given == p.mail.HumanKey() {
		return ""
	}
	place, err := repo.PlaceOf(given)
	if err != nil || place.Path == p.mail.HumanKey() || !inside(place.Path, p.mail.HumanKey()) {
		return ""
	}
	return place.Path[len(p.mail.HumanKey())+1:]
}
