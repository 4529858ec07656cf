package maildir

import (
	"errors"
	"time"

	"mailtree/maildir/refusal"
)

// Every tool call identifies a project by its key. If the key is a path, finding the Git working tree that contains the
// path takes one stat call per parent folder. The store therefore caches the meanings of keys (Store.meant).

// keyMeaning is a cached result of storedir.Resolver.ResolveKey.
type keyMeaning struct {
	human, slug string
	until       time.Time
}

// keyFresh is how long the cached meaning of a key may be used. A key's meaning changes if, for example, a user links
// the working tree to another one or replaces a symbolic link. maxKeys is the maximum number of cached keys; a key is
// at most 4096 bytes long.
const (
	keyFresh = 5 * time.Second
	maxKeys  = 1024
)

// resolve calls storedir.Resolver.ResolveKey for a key of this store. If the key was resolved to an open project less
// than keyFresh ago, and no project has been opened or moved since, resolve uses the cached result and reads no files.
// As a result, it may take up to keyFresh before resolve notices a change to the code base.
func (s *Store) resolve(key string) (human, slug string, err error) {
	now := s.core.Now()
	s.mu.Lock()
	meant := s.meant // store the result in this map: if s.meant is replaced meanwhile, the result is outdated
	m, ok := meant[key]
	s.mu.Unlock()
	if ok && now.Before(m.until) {
		return m.human, m.slug, nil
	}
	meaning, err := s.core.Resolver().ResolveKey(key)
	human, slug = meaning.HumanKey, meaning.Slug
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

// forgetKeys drops the cached meanings of keys, because a key may now identify another project.
func (s *Store) forgetKeys() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meant = map[string]keyMeaning{}
}
