package maildir

import (
	"context"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// WatchRoot is the folder below which all trees lie: what a watcher of the store watches.
func (s *Store) WatchRoot() string { return filepath.Join(s.cfg.Root, projectsDir) }

// Watched reports whether a folder below WatchRoot is part of a tree, or on the way to one: hidden ones are not.
func Watched(rel string) bool { return !strings.HasPrefix(path.Base(rel), ".") }

// Edited tells the store what a watcher of WatchRoot saw: paths below it, and with scan that events were lost. A
// project whose folder has just appeared (a clone made by hand) is opened. It returns without waiting for the index.
func (s *Store) Edited(ctx context.Context, paths []string, scan bool) {
	if scan {
		slugs, err := projectSlugs(s.cfg.Root)
		if err != nil {
			s.cfg.Log.Error("projects cannot be listed", "error", err)
		}
		for _, slug := range slugs {
			s.edited(ctx, slug, nil, true)
		}
	}
	inside := map[string][]string{}
	for _, p := range paths {
		slug, rest, _ := strings.Cut(p, "/")
		in, ok := strings.CutPrefix(rest, repoDir+"/")
		if !ok { // the project's folder itself
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
	if p == nil {
		var err error
		if p, err = s.adopt(ctx, slug); err != nil {
			s.cfg.Log.Error("project left out", "project", slug, "error", err)
		}
		scan = true
	}
	if p != nil {
		p.Edited(paths, scan)
	}
}

// Edited tells the project that files changed that it may not have changed itself: the watcher's batches. The
// paths are relative to the tree; a folder stands for all below it. scan says that events were lost and the whole
// tree must be compared. It returns at once; the writer ingests between two groups. Safe for concurrent use.
func (p *Project) Edited(paths []string, scan bool) {
	p.mu.Lock()
	for _, path := range paths {
		p.edited[path] = true
	}
	p.rescan = p.rescan || scan
	p.mu.Unlock()
	p.poke()
}

// scan asks for a comparison of the whole tree.
func (p *Project) scan() { p.Edited(nil, true) }

// Rescan compares the whole tree with the index and returns when that is level. Errors: ctx's, ErrUnavailable.
func (p *Project) Rescan(ctx context.Context) error {
	p.scan()
	for range 2 { // the writer ingests behind a group, so the second answer comes behind the scan
		if err := p.do(ctx, &op{plan: func(*group) error { return nil }}); err != nil {
			return err
		}
	}
	return nil
}

func (p *Project) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// ingestEdits runs in the writer between groups.
func (p *Project) ingestEdits(ctx context.Context) {
	p.mu.Lock()
	all, scan := slices.Sorted(maps.Keys(p.edited)), p.rescan
	clear(p.edited)
	p.rescan = false
	p.mu.Unlock()
	if len(all) > 0 {
		if err := p.ingest(ctx, all, true); err != nil {
			p.store.cfg.Log.Error("edits not indexed; the tree is compared as a whole later", "project", p.slug, "error", err)
			scan = true
		}
	}
	if scan {
		changes, err := p.store.index.Reconcile(ctx, p.slug, nil)
		if err != nil {
			p.store.cfg.Log.Error("tree not compared", "project", p.slug, "error", err)
			return
		}
		p.noticed(changes)
		p.noteEdits(changes)
	}
}

// ingest brings the index level with paths that somebody else may have changed.
func (p *Project) ingest(ctx context.Context, paths []string, edits bool) error {
	changes, err := p.store.index.Ingest(ctx, p.slug, paths)
	if err != nil {
		return err
	}
	p.noticed(changes)
	if edits {
		p.noteEdits(changes)
		p.noteOthers(paths)
	}
	return nil
}

// noticed rings for those who wait for changes, forgets names that may be gone, and has the time written into
// marks that somebody made with touch.
func (p *Project) noticed(changes []Change) {
	if len(changes) == 0 {
		return
	}
	for _, c := range changes {
		if (c.Kind == KindRead || c.Kind == KindAck) && c.Op == Added {
			if st, err := p.tree.Stat(c.Path); err == nil && st.Size == 0 {
				p.again = append(p.again, p.stampMark(c))
				p.poke()
			}
		}
	}
	p.mu.Lock()
	for _, c := range changes {
		if c.Agent != "" && c.Op != Added {
			delete(p.agents, c.Agent)
		}
	}
	p.mu.Unlock()
	p.store.feed.ring(changes)
}

// noteEdits hands what changed to the history.
func (p *Project) noteEdits(changes []Change) {
	if len(changes) == 0 {
		return
	}
	paths := make([]string, len(changes))
	for i, c := range changes {
		paths[i] = c.Path
	}
	p.history.Edited(paths)
}

// noteOthers hands the history those paths that the index has no row for: they change nothing in the mail but
// belong into the audit. Never a folder: it would stand for files below it whose operations are still to be told.
func (p *Project) noteOthers(paths []string) {
	for _, path := range paths {
		if path == gitIgnore || path == gitAttributes {
			p.history.Edited([]string{path})
		}
	}
}
