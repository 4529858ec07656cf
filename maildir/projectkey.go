package maildir

import (
	"errors"
	"path/filepath"
	"sync"
	"time"

	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
)

// projectKeys remembers which project a path means: every tool call names one, and to find out
// which Git work tree the path lies in takes a look at each folder above it.
type projectKeys struct {
	mu    sync.Mutex
	paths map[string]keyMeaning // by key, of projects that are open
}

// keyMeaning is what storedir.Resolver.ResolveKey found out about a key.
type keyMeaning struct {
	human, slug string
	until       time.Time
}

// keyFresh is how long the meaning of a key counts: meanwhile somebody may link the work tree to
// another one, or replace a symbolic link. maxKeys is how many keys are remembered; a key has at
// most 4096 bytes.
const (
	keyFresh = 5 * time.Second
	maxKeys  = 1024
)

// resolve is storedir.Resolver.ResolveKey for a key of this store. It looks at no file where the
// same key was resolved to an open project less than keyFresh ago, and no project was opened since.
// So a change of the code base may count keyFresh late.
func (s *Store) resolve(key string) (human, slug string, err error) {
	now := s.cfg.Now()
	if m, ok := s.meant.find(key, now); ok {
		return m.human, m.slug, nil
	}
	r := storedir.Resolver{Root: s.cfg.Root, Scope: s.cfg.Scope, Names: s.projectNames}
	human, slug, err = r.ResolveKey(key)
	var e *Error
	if errors.As(err, &e) && e.What == refusal.ProjectKeyRelative {
		return "", "", s.unknownProject(e)
	}
	if err == nil && human != "" && s.known(slug) != nil {
		s.meant.remember(key, keyMeaning{human, slug, now.Add(keyFresh)})
	}
	return human, slug, err
}

// projectNames are the names of the projects that are open.
func (s *Store) projectNames() ([]storedir.ProjectName, error) {
	var all []storedir.ProjectName
	for _, p := range s.Projects() {
		all = append(all, storedir.ProjectName{Slug: p.slug, HumanKey: p.human, Created: p.created})
	}
	return all, nil
}

// KeyNote says that a key, which means the project, names a folder below that; nil where it does
// not.
func (p *Project) KeyNote(key string) *Error {
	if p.KeyFolder(key) == "" {
		return nil
	}
	return &Error{
		What:  refusal.ProjectIsAbove,
		Field: refusal.Project,
		Name:  filepath.Clean(storedir.PlainKey(key)),
		Other: p.human,
	}
}

// MakingNote tells whoever makes the project by a key what they may not expect of it: that it is for
// every path there is, that the key names a linked work tree, or no folder of this machine. It is ""
// where there is nothing to tell.
func (p *Project) MakingNote(key string) string {
	given := filepath.Clean(storedir.PlainKey(key))
	if p.human == "/" {
		return "This project is for every path of the machine, and no code base: if you meant one, call again with its absolute path."
	}
	if linked, err := repo.LinkedWorkTree(given, p.human); err == nil && linked != "" {
		return linked + " is a linked work tree of " + p.human + ": both have this project."
	}
	return p.MissingNote(key)
}

// MissingNote says that no folder lies where the key names one; "" where one does.
func (p *Project) MissingNote(key string) string {
	missing := p.MissingFolder(key)
	if missing == "" {
		return ""
	}
	return "No such folder on this machine: " + missing + ". " +
		"The project is there all the same; if you meant another one, call again with its absolute path."
}

// KeyFolder is the folder that a key, which means the project, names below that, relative to it; ""
// where it names none.
func (p *Project) KeyFolder(key string) string {
	given := filepath.Clean(storedir.PlainKey(key))
	if !filepath.IsAbs(given) || given == p.human {
		return ""
	}
	place, err := repo.PlaceOf(given)
	if err != nil || place.Path == p.human || !inside(place.Path, p.human) {
		return ""
	}
	return place.Path[len(p.human)+1:]
}

func (k *projectKeys) find(key string, now time.Time) (keyMeaning, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m, ok := k.paths[key]
	return m, ok && now.Before(m.until)
}

func (k *projectKeys) remember(key string, m keyMeaning) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.paths == nil || len(k.paths) >= maxKeys {
		k.paths = map[string]keyMeaning{}
	}
	k.paths[key] = m
}

// forget has every key looked up again: one may now mean a project that has just been opened.
func (k *projectKeys) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.paths)
}
