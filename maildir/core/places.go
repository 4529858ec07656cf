package core

import (
	"fmt"
	"sync"
	"time"

	"mailtree/maildir/folders"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
)

// Resolver returns a resolver for project keys.
func (s *Store) Resolver() *storedir.Resolver {
	return &storedir.Resolver{Root: s.Root, Scope: s.Scope, Names: s.ProjectNames, Folders: s.Folders.Load}
}

// ProjectNames returns the names of all projects, including projects that could not be opened. Without those projects,
// a call could create a second project for the same path.
func (s *Store) ProjectNames() (all []storedir.ProjectName, err error) {
	for _, c := range s.Projects.Mails() {
		all = append(all, storedir.ProjectName{Slug: c.Slug, HumanKey: c.HumanKey(), Created: c.Created()})
	}
	left := s.Projects.LeftOut()
	if len(left) == 0 {
		return all, nil
	}
	names, err := storedir.ProjectNames(s.Root)
	for _, n := range names {
		if left[n.Slug] != nil {
			all = append(all, n)
		}
	}
	return all, err
}

// placesFresh is how long a result of Places is cached.
const placesFresh = 5 * time.Second

// places caches the result of Places.
type places struct {
	mu    sync.Mutex
	all   repo.Folders
	of    *folders.Map // the Map from which all was computed
	until time.Time
}

// Places returns the folders on this machine that contain the same code base as a project's folder, except for linked
// worktrees. The result may be out of date by up to placesFresh. Places returns ErrUnavailable if the folders cannot be
// read.
func (s *Store) Places() (repo.Folders, error) {
	now, err := s.Folders.Load()
	if err != nil {
		return nil, refusal.Disk(err)
	}
	if len(now.Lines) == 0 {
		return nil, nil
	}
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	if s.places.of == now && s.Now().Before(s.places.until) {
		return s.places.all, nil
	}
	all, err := s.Resolver().Places()
	if err != nil {
		return nil, refusal.Disk(fmt.Errorf("cannot find the working trees of the linked code bases: %w", err))
	}
	s.places.all, s.places.of, s.places.until = all, now, s.Now().Add(placesFresh)
	return all, nil
}
