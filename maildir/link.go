package maildir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"mailtree/maildir/folders"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
	"mailtree/maildir/writer"
)

// Link is the result of linking a folder to a project.
type Link struct {
	Folder  string // the top of the folder's working tree, or the folder itself if it is in none
	Project *Project
	Moved   string // the project's former folder, which is gone; "" if the folder was only added
	Hidden  string // name of the folder's own project, which the folder does not mean any more; "" if there is none
}

// Link makes a folder mean a project, in addition to the project's own folder. If the project's own folder is gone, the
// folder takes its place, unless the folder has a project itself. If name is "", the project is found by the first commit of the folder's repository. Link
// returns ErrNotFound and ErrInvalid for the project or the folder, ErrConflict if several projects fit, and
// ErrUnavailable.
func (s *Store) Link(ctx context.Context, dir, name string) (l Link, err error) {
	if l.Folder, err = s.linkable(dir); err != nil {
		return l, err
	}
	before, err := s.core.Resolver().ResolveKey(l.Folder)
	if err != nil {
		return l, err
	}
	if name == "" {
		l.Project, err = s.related(ctx, l.Folder)
	} else {
		l.Project, err = s.projectCalled(ctx, name)
	}
	if err != nil {
		return l, err
	}
	own := s.known(before.Slug)
	if own == l.Project && before.Rule != storedir.Noted {
		return l, &Error{What: refusal.Conflict("{name} means the project {=other} already."), Name: l.Folder, Other: l.Project.mail.Slug}
	}
	if own != nil && before.Rule == storedir.Existing {
		l.Hidden = own.mail.Name()
	}
	if gone := l.Project.MissingFolder(""); gone != "" && (own == nil || before.Rule == storedir.Noted) {
		l.Moved = gone
		return l, s.move(ctx, l.Project, l.Folder)
	}
	return l, s.setLines(folders.Line{Kind: folders.Link, Project: l.Project.mail.Slug, Day: s.core.Now(), Folder: l.Folder})
}

// Unlink removes the lines about a folder from the map of folders: those that a user wrote, and those that the program
// wrote by itself. It returns ErrNotFound if there are none.
func (s *Store) Unlink(dir string) (folder string, err error) {
	folder, err = ownTop(dir)
	if err != nil {
		return "", refusal.Disk(err)
	}
	about := func(l folders.Line) bool { return l.Folder == folder || l.Folder == dir }
	removed := false
	err = s.core.Folders.Change(func(m *folders.Map) (*folders.Map, error) {
		next := m.Without(about)
		removed = len(next.Lines) < len(m.Lines)
		return next, nil
	})
	if err != nil {
		return "", refusal.Disk(err)
	}
	s.forgetKeys()
	if !removed {
		e := &Error{What: refusal.NotFound("The folder {name} is not linked to any project."), Name: folder}
		if m, err := s.core.Folders.Load(); err == nil {
			if l, ok := m.Linked(folder); ok {
				e.What, e.Other = refusal.NotFound("The folder {name} is not linked itself, but {=other} is."), l.Folder
			}
		}
		return "", e
	}
	return folder, nil
}

// linkable returns the folder to link: the top of the working tree that contains dir, which may be a linked worktree, or
// dir itself. It returns ErrInvalid for a folder that cannot be a code base, and ErrNotFound if there is none.
func (s *Store) linkable(dir string) (string, error) {
	fi, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !fi.IsDir() {
		return "", &Error{What: refusal.NotFound("There is no folder {name}."), Name: dir}
	}
	if err := s.refuseKey(dir); err != nil {
		return "", err
	}
	folder, err := ownTop(dir)
	if err != nil {
		return "", refusal.Disk(err)
	}
	wide, err := s.core.Scope.IsTooWide(folder)
	if err != nil {
		return "", refusal.Disk(err)
	}
	if wide {
		return "", &Error{What: refusal.Invalid("{name} is not a code base: link a folder below it."), Name: folder}
	}
	return folder, nil
}

// ownTop returns the top of the working tree that contains dir, without symbolic links, or dir if it is in none.
func ownTop(dir string) (string, error) {
	real, err := repo.WithoutLinks(filepath.Clean(dir))
	if err != nil {
		return "", err
	}
	top, err := repo.WorkTree(real)
	if err != nil || top == "" {
		return real, err
	}
	return top, nil
}

// projectCalled returns the project with the given slug or path, or the only project whose path ends with the given
// name. It returns ErrConflict if there are several.
func (s *Store) projectCalled(ctx context.Context, name string) (*Project, error) {
	switch called := s.core.Called(name); {
	case len(called) == 1:
		return s.Project(ctx, called[0].Slug)
	case len(called) > 1:
		e := &Error{What: refusal.Conflict("Several projects are called {name}: {choices}. Give the whole path."), Name: name}
		for _, c := range called {
			e.Near = append(e.Near, c.Name())
		}
		return nil, e
	}
	p, err := s.Project(ctx, name)
	if e := new(Error); errors.As(err, &e) && errors.Is(err, ErrNotFound) {
		e.What = refusal.NotFound("No project is called {name}. {near} {all projects}")
	}
	return p, err
}

// related returns the project whose repository has the same first commit as the folder's: one whose folder is gone, else
// one of which the folder is another clone, else one with another remote. It returns ErrConflict if several fit.
func (s *Store) related(ctx context.Context, folder string) (*Project, error) {
	found, err := s.core.FindRelated(ctx, folder, folder)
	if err != nil {
		return nil, refusal.Disk(err)
	}
	if len(found.Moved) == 0 && found.Clone.Project != "" {
		return s.Project(ctx, found.Clone.Project)
	}
	fit := found.Moved
	if len(fit) == 0 {
		fit = found.Forks
	}
	switch len(fit) {
	case 0:
		return nil, &Error{What: refusal.NotFound("No project has a repository with the same first commit as {name}. Name the project."), Name: folder}
	case 1:
		return s.Project(ctx, fit[0].Slug)
	}
	e := &Error{What: refusal.Conflict("Several projects have a repository with the same first commit as {name}: {choices}. Name one."), Name: folder}
	for _, p := range fit {
		e.Near = append(e.Near, p.Folder)
	}
	return nil, e
}

// move makes folder the project's own folder. The former folder, which is gone, still means the project.
func (s *Store) move(ctx context.Context, p *Project, folder string) error {
	former := p.mail.HumanKey()
	shared, err := storedir.LoadShared(s.core.Root, p.mail.Slug)
	if err != nil {
		return refusal.Disk(fmt.Errorf("read how the project is shared: %w", err))
	}
	if shared.On || shared.Key != "" {
		shared.Key = folder
		if err := storedir.SaveShared(filepath.Dir(storedir.Repo(s.core.Root, p.mail.Slug)), shared); err != nil {
			return refusal.Disk(fmt.Errorf("write how the project is shared: %w", err))
		}
	} else if err := p.rename(ctx, folder); err != nil {
		return err
	}
	p.reread()
	return s.setLines(folders.Line{Kind: folders.Worktree, Project: p.mail.Slug, Day: s.core.Now(), Folder: former})
}

// rename writes the project's folder to project.json.
func (p *Project) rename(ctx context.Context, folder string) error {
	tx := &writer.Tx{Op: writer.Op{Verb: "move", Summary: folder}}
	tx.Plan = func(g *writer.Group) error {
		old, err := p.mail.ContentNow(format.ProjectFile)
		if err != nil {
			return err
		}
		data, err := format.WithHumanKey(old, folder)
		if err != nil {
			return err
		}
		return g.Replace(tx, format.ProjectFile, data)
	}
	return p.mail.Act(ctx, tx)
}

// setLines writes a line to the map of folders.
func (s *Store) setLines(l folders.Line) error {
	err := s.core.Folders.Change(func(m *folders.Map) (*folders.Map, error) { return m.With(l), nil })
	s.forgetKeys()
	return refusal.Disk(err)
}

// NoteFolder notes in the map of folders that an agent of the project works in a folder, if the key is a path in a linked
// worktree. It also notes what identifies the project's repository. Errors are logged.
func (p *Project) NoteFolder(ctx context.Context, key string) {
	if err := p.mail.NoteRepository(context.WithoutCancel(ctx)); err != nil {
		p.mail.Store.Log.Warn("the repository of a project could not be noted", "project", p.mail.Slug, "error", err)
	}
	dir := storedir.PlainKey(key)
	if !filepath.IsAbs(dir) || dir == p.mail.HumanKey() {
		return
	}
	if err := p.mail.NoteWorktree(dir); err != nil {
		p.mail.Store.Log.Warn("a worktree could not be noted", "project", p.mail.Slug, "folder", dir, "error", err)
	}
}

// Relatives returns the names of two projects whose repositories have the same first commit as the repository of this
// project: fork has another remote, and the folder of moved is gone. Both are "" if there is no such project. Relatives
// reads the map of folders, and does not run Git.
func (p *Project) Relatives() (fork, moved string) {
	for _, r := range p.mail.Store.Relatives(p.mail) {
		if name := r.Mail.Name(); r.Gone {
			moved = cmp.Or(moved, name)
		} else {
			fork = cmp.Or(fork, name)
		}
	}
	return fork, moved
}
