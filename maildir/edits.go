package maildir

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/maildir/crossing"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/storedir"
)

// WatchRoot returns the folder that contains all trees. The store's watcher watches this folder.
func (s *Store) WatchRoot() string { return filepath.Join(s.core.Root, storedir.ProjectsDir) }

// Watched reports whether a folder below WatchRoot is part of a tree or contains one. It returns false for hidden
// folders, and for the folder that contains a project's mail to other projects.
func Watched(rel string) bool {
	_, below, _ := strings.Cut(rel, "/")
	return !strings.HasPrefix(path.Base(rel), ".") && below != crossing.FolderName
}

// Edited handles the changed paths, relative to WatchRoot, that a watcher of that folder has reported. If scan is true,
// the watcher has lost events. Edited opens a project whose folder has just appeared (a clone made by hand) and ends a
// project whose folder was removed. It does not wait for the index of other projects.
func (s *Store) Edited(ctx context.Context, paths []string, scan bool) {
	if scan {
		slugs, err := storedir.Slugs(s.core.Root)
		if err != nil {
			s.core.Log.Error("cannot list projects", "error", err)
		}
		for _, p := range s.Projects() {
			slugs = append(slugs, p.mail.Slug)
		}
		slices.Sort(slugs)
		for _, slug := range slices.Compact(slugs) {
			s.edited(ctx, slug, nil, true)
		}
	}
	inside := map[string][]string{}
	for _, p := range paths {
		slug, rest, _ := strings.Cut(p, "/")
		if rest == crossing.FolderName {
			continue
		}
		in, ok := strings.CutPrefix(rest, storedir.RepoDir+"/")
		if !ok { // the path is the project's folder itself, or a file next to the project's tree
			s.edited(ctx, slug, nil, true)
			continue
		}
		inside[slug] = append(inside[slug], in)
	}
	for slug, in := range inside {
		s.edited(ctx, slug, in, false)
	}
}

func (s *Store) edited(ctx context.Context, slug string, paths []string, scan bool) {
	p := s.known(slug)
	removed := p != nil && scan && p.mail.IsRemoved() // the watcher reports the removed folder itself, so scan is true
	if removed || p == nil {
		var err error
		if removed {
			p, err = s.endProject(ctx, p)
		} else {
			p, err = s.adopt(ctx, slug)
		}
		if err != nil && ctx.Err() == nil { // if the server is shutting down, the project is opened at the next start
			s.core.Log.Error("a project is unavailable", "project", slug, "error", err)
		}
		s.forgetLeftOut(slug)
		scan = true
	}
	if p != nil {
		if scan { // shared.json, which is outside the tree, may have changed
			p.reread()
		}
		p.mail.Edited(paths, scan)
	}
}

// Noticed wakes callers that are waiting for changes, and drops cached names and claims that may have been removed.
// It also schedules the operation that writes the time into marks created with touch, and rereads the project's path
// if project.json has changed.
func (o mail) Noticed(changes []index.Change) {
	if len(changes) == 0 {
		return
	}
	if slices.ContainsFunc(changes, func(c index.Change) bool { return c.Path == format.ProjectFile }) {
		o.reread()
	}
	var untimed []string
	for _, c := range changes {
		if c.Kind.Mark() && c.Op == index.Added {
			if st, err := o.mail.Tree.Stat(c.Path); err == nil && st.Size == 0 {
				untimed = append(untimed, c.Path)
			}
		}
	}
	o.Untimed(untimed)
	for _, c := range changes {
		o.Claims.Changed(c.Path, c.Kind)
	}
	o.mail.Noticed(changes)
	o.Agents.NoteStatus(changes)
	o.mail.Store.Feed.Ring(changes)
	o.Sync.Changed()
}
