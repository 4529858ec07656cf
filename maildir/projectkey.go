package maildir

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/tree"
)

// resolveKey turns a key of a project in the store at root into a human key ("" for a slug) and a
// slug. Errors: ErrInvalid, and ErrUnavailable where the machine does not let the code base be
// looked at: another one would be another project.
func resolveKey(root, key string) (human, slug string, err error) {
	switch {
	case key == "":
		return "", "", &Error{What: refusal.EmptyProjectKey, Field: refusal.Project}
	case len(key) > 4096 || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
		return "", "", &Error{What: refusal.ProjectKeyUnusable, Field: refusal.Project, Name: key}
	case filepath.IsAbs(key):
		given := filepath.Clean(key)
		if human, err = repo.MainPath(given); err == nil && human != given {
			human, err = oldOrNew(root, given, human)
		}
		if err != nil {
			return "", "", &Error{
				What:  refusal.ProjectKeyUnread,
				Field: refusal.Project,
				Name:  key,
				Why:   refusal.DiskFault(err),
				Err:   err,
			}
		}
		return human, format.Slug(human), nil
	case format.ValidSlug(key):
		return "", key, nil
	}
	return "", "", &Error{What: refusal.ProjectKeyRelative, Field: refusal.Project, Name: key}
}

// oldOrNew is which of two names of a code base the project goes by: the new one, unless there is
// only a project of the old one, which was made before there was a work tree. Errors: the machine's
// faults.
func oldOrNew(root, old, new string) (string, error) {
	isNew, err := hasProject(root, format.Slug(new))
	if err != nil || isNew {
		return new, err
	}
	isOld, err := hasProject(root, format.Slug(old))
	if err == nil && isOld {
		return old, nil
	}
	return new, err
}

// hasProject reports whether the store at root has a project of that slug. Errors: the machine's
// faults.
func hasProject(root, slug string) (bool, error) {
	_, err := os.Lstat(filepath.Join(root, projectsDir, slug, repoDir))
	return err == nil, tree.MachineFault(err)
}

// projectKeys remembers which project a path means: every tool call names one, and to find out
// which Git work tree the path lies in takes a look at each folder above it.
type projectKeys struct {
	mu    sync.Mutex
	paths map[string]keyMeaning // by key, of projects that are open
}

// keyMeaning is what resolveKey found out about a key.
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

// resolve is resolveKey for a key of this store. It looks at no file where the same key was
// resolved to an open project less than keyFresh ago, and no project was opened since. So a change
// of the code base may count keyFresh late.
func (s *Store) resolve(key string) (human, slug string, err error) {
	now := s.cfg.Now()
	if m, ok := s.meant.find(key, now); ok {
		return m.human, m.slug, nil
	}
	human, slug, err = resolveKey(s.cfg.Root, key)
	if err == nil && human != "" && s.known(slug) != nil {
		s.meant.remember(key, keyMeaning{human, slug, now.Add(keyFresh)})
	}
	return human, slug, err
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
