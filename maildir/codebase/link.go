package codebase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"mailtree/maildir/core"
	"mailtree/maildir/folders"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/storedir"
	"mailtree/maildir/writer"
)

// Link is the result of linking a folder to a project.
type Link struct {
	Folder   string // the top of the folder's working tree, or the folder itself if it is not in a working tree
	Slug     string // slug of the project
	HumanKey string // the project's own folder
	Moved    string // the project's former folder, which no longer exists; empty if the new folder was only added
	Hidden   string // name of the folder's own project, which the folder no longer identifies; empty if the folder had none
}

// Link maps a folder to a project, so that both this folder and the project's own folder identify the project. If the
// project's own folder no longer exists, the linked folder replaces it, unless the linked folder has its own project.
// If name is "", the project is found by the first commit of the folder's repository. Link may return ErrNotFound or
// ErrInvalid for the project or the folder, ErrConflict if several projects match or the folder is already linked, or
// ErrUnavailable.
func (s *Codebases) Link(ctx context.Context, dir, name string) (Link, error) {
	folder, err := s.linkable(dir)
	if err != nil {
		return Link{}, err
	}
	before, err := s.store.Resolver().ResolveKey(folder)
	if err != nil {
		return Link{}, err
	}
	to, err := s.target(ctx, folder, name)
	if err != nil {
		return Link{}, err
	}
	own := s.store.Projects.Mail(before.Slug)
	if own == to && before.Rule != storedir.Noted {
		return Link{}, &refusal.Error{What: refusal.Conflict("{name} already belongs to project {=other}."), Name: folder, Other: to.Slug}
	}
	l := Link{Folder: folder, Slug: to.Slug}
	if own != nil && before.Rule == storedir.Existing {
		l.Hidden = own.Name()
	}
	if gone := s.Of(to).Missing(""); gone != "" && (own == nil || before.Rule == storedir.Noted) {
		l.Moved = gone
		err = s.move(ctx, to, folder)
	} else {
		err = s.write(folders.Line{Kind: folders.Link, Project: to.Slug, Day: s.store.Now(), Folder: folder})
	}
	l.HumanKey = to.HumanKey()
	return l, err
}

// Unlink removes every line for a folder from the map of folders, whether a user or the program added the line. It
// returns ErrNotFound if there is no such line, or ErrUnavailable if the map cannot be used.
func (s *Codebases) Unlink(dir string) (folder string, err error) {
	if folder, err = Top(dir); err != nil {
		return "", err
	}
	removed := false
	err = s.store.Folders.Change(func(m *folders.Map) (*folders.Map, error) {
		next := m.Without(func(l folders.Line) bool { return l.Folder == folder || l.Folder == dir })
		removed = len(next.Lines) < len(m.Lines)
		return next, nil
	})
	if err != nil {
		return "", refusal.Disk(fmt.Errorf("cannot write the map of folders: %w", err))
	}
	s.projects.Moved(nil)
	if removed {
		return folder, nil
	}
	e := &refusal.Error{What: refusal.NotFound("The folder {name} is not linked to any project."), Name: folder}
	if m, err := s.store.Folders.Load(); err == nil {
		if l, ok := m.Linked(folder); ok {
			e.What, e.Other = refusal.NotFound("The folder {name} is not linked itself, but it is inside {=other}, which is."), l.Folder
		}
	}
	return "", e
}

// linkable returns the folder to link. This is the top of the working tree that contains dir, or dir itself if it is
// not in a working tree. The working tree may be a linked worktree. linkable returns ErrNotFound if dir is not a
// folder, and ErrInvalid if the folder cannot be a code base.
func (s *Codebases) linkable(dir string) (string, error) {
	fi, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !fi.IsDir() {
		return "", &refusal.Error{What: refusal.NotFound("There is no folder {name}."), Name: dir}
	}
	if err := s.Refuse(dir); err != nil {
		return "", err
	}
	folder, err := Top(dir)
	if err != nil {
		return "", err
	}
	wide, err := s.store.Scope.IsTooWide(folder)
	if err != nil {
		return "", refusal.Disk(fmt.Errorf("cannot compare a folder with the home folder: %w", err))
	}
	if wide {
		return "", &refusal.Error{
			What: refusal.Invalid("{name} cannot be a code base, because it would cover every folder below it: link " +
				"one of these folders instead."),
			Name: folder,
		}
	}
	return folder, nil
}

// target returns the project to link a folder to. If a name is given, it is the project with that slug or path, or the
// only project whose path ends with the name. Otherwise, it is a project whose repository has the same first commit as
// the folder's. target first looks for a project whose folder no longer exists, then for a project with another clone
// of the same repository, and then for a project whose repository has a different remote. It returns ErrNotFound if no
// project matches, and ErrConflict if several projects match.
func (s *Codebases) target(ctx context.Context, folder, name string) (*core.Mail, error) {
	if name != "" {
		return s.called(ctx, name)
	}
	found, err := s.related(ctx, folder, folder)
	if err != nil {
		return nil, err
	}
	if len(found.Moved) == 0 && found.Clone.Project != "" {
		return s.projects.Find(ctx, found.Clone.Project)
	}
	fit := found.Moved
	if len(fit) == 0 {
		if fit = found.Forks; found.Unread != nil {
			return nil, found.Unread
		}
	}
	switch len(fit) {
	case 0:
		return nil, &refusal.Error{
			What: refusal.NotFound("No project has a repository with the same first commit as {name}. Specify the project."),
			Name: folder,
		}
	case 1:
		return s.projects.Find(ctx, fit[0].Slug)
	}
	e := &refusal.Error{
		What: refusal.Conflict("Several projects have a repository with the same first commit as {name}: {choices}. Specify one " +
			"of them."),
		Name: folder,
	}
	for _, p := range fit {
		e.Near = append(e.Near, p.Folder)
	}
	return nil, e
}

// called returns the project with the given name. See target.
func (s *Codebases) called(ctx context.Context, name string) (*core.Mail, error) {
	switch called := s.store.Called(name); {
	case len(called) == 1:
		return called[0], nil
	case len(called) > 1:
		e := &refusal.Error{What: refusal.Conflict("Several projects are called {name}: {choices}. Specify the full path."), Name: name}
		for _, c := range called {
			e.Near = append(e.Near, c.Name())
		}
		return nil, e
	}
	c, err := s.projects.Find(ctx, name)
	if e := new(refusal.Error); errors.As(err, &e) && errors.Is(err, refusal.ErrNotFound) {
		e.What = refusal.NotFound("No project is called {name}. {near} {all projects}")
	}
	return c, err
}

// move makes folder the project's own folder. The former folder, which no longer exists, still identifies the project.
func (s *Codebases) move(ctx context.Context, c *core.Mail, folder string) error {
	former := c.HumanKey()
	shared, err := storedir.LoadShared(s.store.Root, c.Slug)
	if err != nil {
		return refusal.Disk(fmt.Errorf("cannot read the project's sync settings: %w", err))
	}
	if shared.On || shared.Key != "" {
		shared.Key = folder
		if err := storedir.SaveShared(filepath.Dir(storedir.Repo(s.store.Root, c.Slug)), shared); err != nil {
			return refusal.Disk(fmt.Errorf("cannot write the project's sync settings: %w", err))
		}
	} else if err := rename(ctx, c, folder); err != nil {
		return err
	}
	s.projects.Moved(c)
	err = s.write(folders.Line{Kind: folders.Worktree, Project: c.Slug, Day: s.store.Now(), Folder: former})
	s.noted.Delete(c.Slug) // the recorded repository still has the former folder
	s.Of(c).Visited(ctx, folder)
	return err
}

// rename writes the project's folder to project.json.
func rename(ctx context.Context, c *core.Mail, folder string) error {
	tx := &writer.Tx{Op: writer.Op{Verb: "move", Summary: folder}}
	tx.Plan = func(g *writer.Group) error {
		old, err := c.ContentNow(format.ProjectFile)
		if err != nil {
			return err
		}
		data, err := format.WithHumanKey(old, folder)
		if err != nil {
			return fmt.Errorf("cannot change the folder in %s: %w", format.ProjectFile, err)
		}
		return g.Replace(tx, format.ProjectFile, data)
	}
	return c.Act(ctx, tx)
}

func (s *Codebases) write(l folders.Line) error {
	err := s.store.Folders.Change(func(m *folders.Map) (*folders.Map, error) { return m.With(l), nil })
	s.projects.Moved(nil)
	if err != nil {
		return refusal.Disk(fmt.Errorf("cannot write the map of folders: %w", err))
	}
	return nil
}
