package core

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"mailtree/maildir/folders"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
)

// Resolver returns the Resolver for the keys of the open projects.
func (s *Store) Resolver() *storedir.Resolver {
	return &storedir.Resolver{Root: s.Root, Scope: s.Scope, Names: s.projectNames, Folders: s.Folders.Load}
}

// projectNames returns the names of the open projects, and of those that could not be opened. Without the latter, a call
// could create a second project for a path.
func (s *Store) projectNames() (all []storedir.ProjectName, err error) {
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

// placesFresh is how long the result of Places is cached.
const placesFresh = 5 * time.Second

// places caches the result of Places.
type places struct {
	mu    sync.Mutex
	all   repo.Folders
	of    *folders.Map // the map that all was computed from
	until time.Time

	noted sync.Map // slugs of the projects for which NoteRepository was called
}

// Places returns the folders on this machine that contain the same code base as a project's folder, other than
// worktrees that Git has linked. It may notice a change to the code base up to placesFresh late. It returns
// ErrUnavailable if they cannot be read.
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
		return nil, refusal.Disk(fmt.Errorf("find the other folders of the code bases: %w", err))
	}
	s.places.all, s.places.of, s.places.until = all, now, s.Now().Add(placesFresh)
	return all, nil
}

// FindClone looks for a project whose repository the folder of a new project is another clone of. It notes the folder in
// the map of folders. See folders.Finder.
func (s *Store) FindClone(ctx context.Context, m storedir.Meaning) (found folders.Found, err error) {
	if m.Rule != storedir.New || m.Place.Top == "" || m.HumanKey != m.Place.Top || s.Scope.PerPath {
		return found, nil
	}
	return s.FindRelated(ctx, m.Place.Path, m.Place.Top)
}

// FindRelated is folders.Finder.Find for the open projects, oldest first.
func (s *Store) FindRelated(ctx context.Context, path, top string) (found folders.Found, err error) {
	var projects []folders.Project
	names, err := s.projectNames()
	if err != nil {
		return found, err
	}
	slices.SortStableFunc(names, func(a, b storedir.ProjectName) int { return a.Created.Compare(b.Created) })
	for _, n := range names {
		if n.HumanKey != "" {
			projects = append(projects, folders.Project{Slug: n.Slug, Folder: n.HumanKey})
		}
	}
	return s.finder().Find(ctx, path, top, projects)
}

func (s *Store) finder() *folders.Finder { return &folders.Finder{File: s.Folders, Now: s.Now} }

// NoteRepository notes in the map of folders what identifies the project's repository, so that the project is recognized
// if its folder is moved. It tries that once while the server runs.
func (c *Mail) NoteRepository(ctx context.Context) error {
	if _, tried := c.Store.places.noted.LoadOrStore(c.Slug, true); tried || c.HumanKey() == "" {
		return nil
	}
	return c.Store.finder().Note(ctx, folders.Project{Slug: c.Slug, Folder: c.HumanKey()})
}

// NoteWorktree notes in the map of folders that dir is in a worktree that Git has linked to the project's working tree,
// so that the worktree's path still means the project after the worktree was removed.
func (c *Mail) NoteWorktree(dir string) error {
	top, err := repo.Folders(nil).Around(dir, c.HumanKey())
	if err != nil || top == "" {
		return err
	}
	line := folders.Line{Kind: folders.Worktree, Project: c.Slug, Day: c.Store.Now(), Folder: top}
	known, err := c.Store.Folders.Load()
	if err != nil || known.Has(line) {
		return err
	}
	return c.Store.Folders.Change(func(m *folders.Map) (*folders.Map, error) { return m.With(line), nil })
}

// Relative is a project whose repository has the same first commit as another project's repository.
type Relative struct {
	Mail *Mail
	Gone bool // the project's folder is gone
}

// Relatives returns the relatives of a project, oldest first, according to the map of folders. It returns none if the map cannot be
// read.
func (s *Store) Relatives(of *Mail) (all []Relative) {
	m, err := s.Folders.Load()
	if err != nil {
		return nil
	}
	own, ok := m.RepositoryAround(of.HumanKey())
	if !ok {
		return nil
	}
	mails := slices.Clone(s.Projects.Mails())
	slices.SortStableFunc(mails, func(a, b *Mail) int { return a.Created().Compare(b.Created()) })
	for _, c := range mails {
		r, ok := m.RepositoryAround(c.HumanKey())
		if c == of || !ok || !r.SharesFirst(own) || r.Folder == own.Folder {
			continue
		}
		if _, err := os.Stat(c.HumanKey()); err == nil && r.IsTwin(own) { // it was made a project of its own on purpose
			continue
		}
		_, err := os.Stat(c.HumanKey())
		all = append(all, Relative{c, errors.Is(err, fs.ErrNotExist)})
	}
	return all
}
