package maildir

import (
	"cmp"
	"context"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// WatchRoot is the folder below which all trees lie: what a watcher of the store watches.
func (s *Store) WatchRoot() string { return filepath.Join(s.cfg.Root, storedir.ProjectsDir) }

// Watched reports whether a folder below WatchRoot is part of a tree, or on the way to one: hidden
// ones are not.
func Watched(rel string) bool { return !strings.HasPrefix(path.Base(rel), ".") }

// What Edited is told to scan.
const (
	onlyThere = false // the paths
	anywhere  = true  // the whole tree
)

// Edited tells the store what a watcher of WatchRoot saw: paths below it, and with scan that events
// were lost. A project whose folder has just appeared (a clone made by hand) is opened, one whose
// folder is removed is ended. It returns without waiting for the index of others.
func (s *Store) Edited(ctx context.Context, paths []string, scan bool) {
	if scan {
		slugs, err := storedir.Slugs(s.cfg.Root)
		if err != nil {
			s.cfg.Log.Error("projects cannot be listed", "error", err)
		}
		for _, p := range s.Projects() {
			slugs = append(slugs, p.slug)
		}
		slices.Sort(slugs)
		for _, slug := range slices.Compact(slugs) {
			s.edited(ctx, slug, nil, anywhere)
		}
	}
	inside := map[string][]string{}
	for _, p := range paths {
		slug, rest, _ := strings.Cut(p, "/")
		in, ok := strings.CutPrefix(rest, storedir.RepoDir+"/")
		if !ok { // the project's folder itself
			s.edited(ctx, slug, nil, anywhere)
			continue
		}
		inside[slug] = append(inside[slug], in)
	}
	for slug, in := range inside {
		s.edited(ctx, slug, in, onlyThere)
	}
}

func (s *Store) edited(ctx context.Context, slug string, paths []string, scan bool) {
	p := s.known(slug)
	if p != nil && scan && p.isRemoved() { // the watcher tells of the folder itself
		s.endProject(ctx, p)
		p = nil
	}
	if p == nil {
		var err error
		if p, err = s.adopt(ctx, slug); err != nil {
			s.cfg.Log.Error("project left out", "project", slug, "error", err)
		}
		s.forgetLeftOut(slug)
		scan = true
	}
	if p != nil {
		p.Edited(paths, scan)
	}
}

// Edited tells the project that files changed that it may not have changed itself: the watcher's
// batches. The paths are relative to the tree; a folder stands for all below it. scan says that
// events were lost and the whole tree must be compared. It returns at once; the paths are ingested
// between two groups. Safe for concurrent use.
func (p *Project) Edited(paths []string, scan bool) {
	p.mu.Lock()
	p.askIngest(paths)
	p.mu.Unlock()
	if scan {
		p.askCompare()
	}
}

// askIngest has the paths ingested, soon, with all that is in edited. p.mu is held.
func (p *Project) askIngest(paths []string) {
	for _, path := range paths {
		p.edited[path] = true
	}
	if !p.asked {
		p.asked = true
		p.writer.Aside(p.ingestEdited)
	}
}

// askCompare rings the one who compares.
func (p *Project) askCompare() { ring(p.doubt) }

// scan asks for a comparison of the whole tree.
func (p *Project) scan() { p.Edited(nil, anywhere) }

// Rescan compares the whole tree with the index and returns when that is level. Errors: ctx's,
// ErrUnavailable; that too where a fault of the machine kept a file from being looked at.
func (p *Project) Rescan(ctx context.Context) error {
	done := make(chan error, 1)
	p.mu.Lock()
	p.rescan = append(p.rescan, done)
	p.mu.Unlock()
	p.askCompare()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.writer.Stopped():
		return writer.ErrStopped
	}
}

// ingestEdited ingests what others changed, or a part of it, between two groups.
func (p *Project) ingestEdited(ctx context.Context, c *tree.Changer) {
	e := p.takeEdits(c)
	err := p.ingestAlike(ctx, e.alike)
	if err == nil {
		err = p.ingestOthers(ctx, e.paths)
	}
	if err == nil && len(e.level) > 0 {
		err = p.needRead()
	}
	for _, done := range e.level {
		done <- refusal.Disk(err)
	}
}

// ingestAlike ingests files whose state says that nothing has changed: somebody has written into them in the
// moment in which the server had put them there, and set their time back.
func (p *Project) ingestAlike(ctx context.Context, paths []string) error {
	written := map[string]tree.Written{}
	for _, path := range paths {
		data, st, err := p.tree.Read(path, p.tree.MaxFile())
		if err == nil {
			st.MTime = st.CTime // which proves nothing
			written[path] = tree.Written{Data: data, Stat: st}
		}
	}
	if len(written) == 0 {
		return nil
	}
	in, err := p.store.index.IngestWritten(ctx, p.slug, slices.Collect(maps.Keys(written)), written)
	if err == nil {
		p.noticed(in.Changes)
		p.noteEdits(in.Changes)
	}
	return err
}

// edits is what others changed, to be ingested at once.
type edits struct {
	paths []string
	alike []string     // files of the server that others have changed, with the state that the server's had
	level []chan error // those who wait for a comparison of the tree that is ingested with these
}

// mostEdits is how many edits are ingested at once, so that nobody waits long.
const mostEdits = 256

// takeEdits returns what was reported since the last time, a part of it when that is much. The server's
// own files, found as they were when they were ingested, are left out.
func (p *Project) takeEdits(c *tree.Changer) (e edits) {
	p.mu.Lock()
	reported, level := p.edited, p.compared
	p.edited, p.compared, p.asked = map[string]bool{}, nil, false
	p.mu.Unlock()
	all := slices.Collect(maps.Keys(reported))
	var later []string
	if len(all) > mostEdits {
		all, later = firstEdits(all)
	}
	for _, path := range all {
		st, err := c.Stat(path)
		sum := ""
		if err == nil {
			sum = p.writer.OwnSum(path, st)
		}
		if sum == "" {
			e.paths = append(e.paths, path)
		} else if same, err := p.tree.HasSHA256(path, sum); same {
			p.noteUnread([]string{path}, nil)
		} else if e.paths = append(e.paths, path); err == nil {
			e.alike = append(e.alike, path)
		}
	}
	slices.Sort(e.paths)
	if len(later) == 0 {
		e.level = level
		return e
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.compared = append(level, p.compared...)
	p.askIngest(later)
	return e
}

// firstEdits cuts paths in two: some, and the others. The files of one message stay together.
func firstEdits(paths []string) (some, others []string) {
	type edit struct{ id, path string }
	all := make([]edit, len(paths))
	for i, p := range paths {
		all[i] = edit{format.Locate(p).ID, p}
	}
	slices.SortFunc(all, func(a, b edit) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.path, b.path)) })
	for i, e := range all {
		if i < mostEdits || e.id != "" && e.id == all[mostEdits-1].id {
			some = append(some, e.path)
		} else {
			others = append(others, e.path)
		}
	}
	return some, others
}

// ingestOthers ingests what others changed; where that fails the tree is compared as a whole later.
func (p *Project) ingestOthers(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	_, err := p.ingest(ctx, paths)
	if err != nil {
		p.store.cfg.Log.Error("edits not indexed; the tree is compared as a whole later", "project", p.slug, "error", err)
		time.AfterFunc(retryTime, p.askCompare)
	}
	return err
}

const retryTime = 2 * time.Second

// compare runs beside the writer. Every hour, and when somebody asks for it, it looks for what
// differs between tree and index, and reports that as edits, and tells the holders of claims that
// do not hold; every hour it has ended claims removed too.
func (p *Project) compare(ctx context.Context) {
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	for {
		select {
		case <-p.doubt:
		case <-hourly.C:
			p.writer.Later(p.sweepClaims())
		case <-ctx.Done():
			return
		}
		p.mu.Lock()
		waiting := p.rescan
		p.rescan = nil
		p.mu.Unlock()
		paths, err := p.differing(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.store.cfg.Log.Error("tree not compared; that is tried again", "project", p.slug, "error", err)
			time.AfterFunc(retryTime, p.askCompare)
			for _, done := range waiting {
				done <- refusal.Disk(err)
			}
			continue
		}
		for _, u := range p.Unread() {
			paths = append(paths, u.Path)
		}
		p.mu.Lock()
		p.compared = append(p.compared, waiting...)
		p.askIngest(paths)
		p.mu.Unlock()
		if err := p.tellOutdone(ctx); err != nil && ctx.Err() == nil {
			p.store.cfg.Log.Warn("holders of claims that do not hold were not told", "project", p.slug, "error", err)
		}
	}
}

// differing returns the paths at which tree and index differ.
func (p *Project) differing(ctx context.Context) ([]string, error) {
	select {
	case p.store.comparing <- struct{}{}:
		defer func() { <-p.store.comparing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := p.store.index.Attach(ctx, p.slug, p.tree); err != nil { // it may have failed at the start
		return nil, err
	}
	return p.store.index.Differing(ctx, p.slug)
}

// atOnce is how many projects are compared at once, and as many others are looked at: a start, or a
// script of a person's, has all of them do so, each with descriptors of its own. More than the
// processors would make nothing faster.
const atOnce = 4

// ingest brings the index level with paths that somebody else may have changed, and returns what could
// not be looked at.
func (p *Project) ingest(ctx context.Context, paths []string) ([]tree.Unread, error) {
	p.store.looking <- struct{}{}
	defer func() { <-p.store.looking }()
	defer p.tree.Hold()()
	in, err := p.store.index.Ingest(ctx, p.slug, paths)
	if err != nil {
		return nil, err
	}
	p.noteUnread(paths, in.Unread)
	p.noticed(in.Changes)
	p.noteEdits(in.Changes)
	for _, own := range []string{format.GitIgnore, format.GitAttributes} { // no mail, but they belong into the audit
		if slices.Contains(paths, own) {
			p.history.Edited([]string{own})
		}
	}
	p.noteSaved(paths, in.Changes)
	return in.Unread, nil
}

// noticed rings for those who wait for changes, forgets names and claims that may be gone, and has
// the time written into marks that somebody made with touch.
func (p *Project) noticed(changes []index.Change) {
	if len(changes) == 0 {
		return
	}
	for _, c := range changes {
		if c.Kind.Mark() && c.Op == index.Added {
			if st, err := p.tree.Stat(c.Path); err == nil && st.Size == 0 {
				p.writer.Later(p.stampMark(c))
			}
		}
	}
	for _, c := range changes {
		p.leases.Changed(c.Path, c.Kind)
	}
	p.mu.Lock()
	for _, c := range changes {
		if c.Agent != "" && c.Op != index.Added {
			delete(p.agents, c.Agent)
			p.left++
		}
	}
	p.mu.Unlock()
	p.noteStatus(changes)
	p.store.feed.ring(changes)
}

// noteEdits hands what changed to the history.
func (p *Project) noteEdits(changes []index.Change) {
	if len(changes) == 0 {
		return
	}
	paths := make([]string, len(changes))
	for i, c := range changes {
		paths[i] = c.Path
	}
	p.history.Edited(paths)
}
