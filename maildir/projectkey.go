package maildir

import (
	"errors"
	"time"

	"mailtree/maildir/refusal"
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
	meant := s.meant // results go into this map: if it is replaced meanwhile, no outdated meaning is cached
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

// forgetKeys drops the cached meanings of keys, because a key may now mean another project.
func (s *Store) forgetKeys() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.meant = map[string]keyMeaning{}
}
