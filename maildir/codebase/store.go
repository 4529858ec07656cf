package codebase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"mailtree/maildir/core"
	"mailtree/maildir/folders"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// Projects opens the projects of a store. It is the part of package maildir that this package needs.
type Projects interface {
	// Find returns the project with the given key or slug. It returns any error from maildir.Store.Project.
	Find(ctx context.Context, key string) (*core.Mail, error)

	// Moved is called after a change that may affect which project a key identifies. c is the project whose own folder
	// changed, or nil.
	Moved(c *core.Mail)
}

// Codebases gives access to the code bases of a store's projects. It is safe for concurrent use.
type Codebases struct {
	store    *core.Store
	projects Projects
	noted    sync.Map // slugs of the projects whose repository Visited has tried to record
}

// New returns the code bases of a store.
func New(store *core.Store, projects Projects) *Codebases {
	return &Codebases{store: store, projects: projects}
}

// Of returns the code base of a project.
func (s *Codebases) Of(c *core.Mail) *Codebase { return &Codebase{all: s, mail: c} }

// Top returns the top of the working tree that contains dir, or dir itself if it is not in a working tree. It resolves
// symbolic links. The working tree may be a linked worktree. Top returns ErrUnavailable for a machine fault.
func Top(dir string) (string, error) {
	real, err := repo.WithoutLinks(filepath.Clean(dir))
	if err != nil {
		return "", refusal.Disk(fmt.Errorf("cannot resolve the symbolic links in a path: %w", err))
	}
	top, err := repo.WorkTree(real)
	if err != nil {
		return "", refusal.Disk(fmt.Errorf("cannot find the top of a working tree: %w", err))
	}
	if top == "" {
		return real, nil
	}
	return top, nil
}

// IsMissing reports whether path certainly is not a folder. It returns false if that cannot be determined.
func IsMissing(path string) bool {
	fi, err := os.Stat(path)
	return tree.FaultOf(err) == tree.FaultGone || err == nil && !fi.IsDir()
}

// Refuse returns ErrInvalid for a path that cannot be a code base: a file, or a path in a system folder or in the
// store's folder, even through symbolic links. A path that does not exist is allowed, as is "". Refuse returns
// ErrUnavailable for machine faults.
func (s *Codebases) Refuse(path string) error {
	if path == "" {
		return nil
	}
	fi, err := os.Stat(path)
	if err == nil && !fi.IsDir() || errors.Is(err, syscall.ENOTDIR) {
		return &refusal.Error{
			What: refusal.Invalid("{field} {name} is a file, or is below a file: pass the absolute path of the " +
				"code base's folder, such as /home/me/backend."),
			Field: refusal.Project,
			Name:  path,
		}
	}
	real, err := repo.WithoutLinks(path)
	root, rerr := repo.WithoutLinks(s.store.Root)
	if err = errors.Join(err, rerr); err != nil {
		return refusal.Disk(fmt.Errorf("cannot resolve the symbolic links in a path: %w", err))
	}
	for _, at := range []string{path, real} {
		for _, dir := range []string{"/proc", "/sys", "/dev", s.store.Root, root} {
			if !isIn(at, dir) || dir == "/dev" && isIn(at, "/dev/shm") { // Linux keeps ordinary files in memory there
				continue
			}
			whose := "the system folder " + dir
			if dir != "/proc" && dir != "/sys" && dir != "/dev" {
				whose = "the mail store"
			}
			return &refusal.Error{
				What: refusal.Invalid("{field} {name} is in {=other}, which cannot contain a code base: pass the " +
					"absolute path of the code base's folder, such as /home/me/backend."),
				Field: refusal.Project,
				Name:  path,
				Other: whose,
			}
		}
	}
	return nil
}

// FindClone looks for an existing project whose folder contains another clone of the repository in a new project's
// folder. If it finds one, it adds the new folder to the map of folders and returns the existing project's slug.
// Otherwise it returns "". It returns ErrUnavailable if the map or a folder cannot be used, or if Git fails. See
// folders.Finder.
func (s *Codebases) FindClone(ctx context.Context, m storedir.Meaning) (slug string, err error) {
	if m.Rule != storedir.New || m.Place.Top == "" || m.HumanKey != m.Place.Top || s.store.Scope.PerPath {
		return "", nil
	}
	found, err := s.related(ctx, m.Place.Path, m.Place.Top)
	return found.Clone.Project, err
}

// related calls folders.Finder.Find with the store's projects, oldest first.
func (s *Codebases) related(ctx context.Context, path, top string) (found folders.Found, err error) {
	names, err := s.store.ProjectNames()
	if err != nil {
		return found, refusal.Disk(fmt.Errorf("cannot look for other clones: %w", err))
	}
	slices.SortStableFunc(names, func(a, b storedir.ProjectName) int { return a.Created.Compare(b.Created) })
	var projects []folders.Project
	for _, n := range names {
		if n.HumanKey != "" {
			projects = append(projects, folders.Project{Slug: n.Slug, Folder: n.HumanKey})
		}
	}
	if found, err = s.finder().Find(ctx, path, top, projects); err != nil {
		return found, refusal.Disk(fmt.Errorf("cannot look for other clones: %w", err))
	}
	return found, nil
}

func (s *Codebases) finder() *folders.Finder {
	return &folders.Finder{File: s.store.Folders, Now: s.store.Now}
}

// relative is a project whose repository has the same first commit as another project's repository.
type relative struct {
	mail *core.Mail
	gone bool // the project's folder no longer exists
}

// relatives returns the relatives of a project, oldest first, according to the map of folders. If the map cannot be
// read, it returns nil. It omits a clone that has its own project, because a user chose to keep that project separate.
func (s *Codebases) relatives(of *core.Mail) (all []relative) {
	m, err := s.store.Folders.Load()
	if err != nil {
		return nil
	}
	own, ok := m.RepositoryAround(of.HumanKey())
	if !ok {
		return nil
	}
	mails := slices.Clone(s.store.Projects.Mails())
	slices.SortStableFunc(mails, func(a, b *core.Mail) int { return a.Created().Compare(b.Created()) })
	for _, c := range mails {
		r, ok := m.RepositoryAround(c.HumanKey())
		if c == of || !ok || !r.SharesFirst(own) || r.Folder == own.Folder {
			continue
		}
		_, err := os.Stat(c.HumanKey())
		if err == nil && r.IsTwin(own) {
			continue
		}
		all = append(all, relative{c, errors.Is(err, fs.ErrNotExist)})
	}
	return all
}
