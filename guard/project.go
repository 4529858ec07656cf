package guard

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"strings"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// project is a project whose claims apply to a check.
type project struct {
	tree   *tree.Tree // must be closed by the caller of projects
	name   string     // the project's human key, or its slug if it has no human key
	folder string     // the project's folder, relative to the top of the working tree, with slashes; "" means the top
}

// projects opens the question's project, and every other project whose folder is in the working tree. The caller must
// close the returned projects, even after an error.
func (c *check) projects(ctx context.Context) (all []project, err error) {
	dir, err := filepath.Abs(c.q.Dir)
	if err != nil {
		return nil, err
	}
	if c.q.Project == "" && c.q.ByHand {
		c.adoptInstalled(ctx, dir)
	}
	given := c.q.Project != ""
	if !given {
		if c.q.Project, err = c.git.line(ctx, "rev-parse", "--show-toplevel"); err != nil {
			return nil, err
		}
	}
	in, err := c.q.placeOf(dir)
	if err != nil {
		return nil, err
	}
	add := func(key string) (slug string, err error) {
		t, slug, err := storedir.OpenProject(c.q.Store, key, c.q.Scope)
		if err != nil {
			return slug, err
		}
		p := project{tree: t, name: storedir.HumanKeyOf(t)}
		p.folder, _ = in.folderOf(p.name)
		if p.name == "" {
			p.name = slug
		}
		all = append(all, p)
		return slug, nil
	}
	named, err := add(c.q.Project)
	if !given {
		err = noProject(err)
	}
	if err != nil || in.Top == "" {
		return all, err
	}
	for _, n := range in.names {
		if _, inside := in.folderOf(n.HumanKey); !inside || n.Slug == named {
			continue
		}
		if _, err := add(n.Slug); err != nil {
			return all, err
		}
	}
	return all, nil
}

// placed is the working tree in which a check runs, along with the names of the store's projects and the other clones
// of the code base.
type placed struct {
	repo.Place
	others repo.Folders
	names  []storedir.ProjectName
}

// placeOf returns the working tree that contains dir, with the data from the store that is needed to find its
// projects.
func (q *Question) placeOf(dir string) (in placed, err error) {
	if in.Place, err = repo.PlaceOf(dir); err != nil || in.Top == "" {
		return in, err
	}
	if in.names, err = storedir.ProjectNames(q.Store); err != nil {
		return in, err
	}
	in.others, err = othersOf(q.Store, q.Scope, in.names)
	return in, err
}

// othersOf returns the other folders on this machine that contain the code base of a project.
func othersOf(store string, scope storedir.Scope, names []storedir.ProjectName) (repo.Folders, error) {
	r := storedir.NewResolver(store, scope)
	r.Names = func() ([]storedir.ProjectName, error) { return names, nil }
	return r.Places()
}

// folderOf returns the path of a project's folder, relative to the top of the working tree. human is the project's
// human key. If the folder is not in the working tree, inside is false.
func (in *placed) folderOf(human string) (rel string, inside bool) {
	for _, top := range []string{in.Top, in.BareTop} {
		if rel, inside := folderBelow(top, human); inside {
			return rel, true
		}
	}
	for _, f := range in.others {
		at, inTree := folderBelow(in.Top, f.Path)
		rel, inside := folderBelow(f.Same, human)
		if inTree && inside {
			return path.Join(at, rel), true
		}
	}
	return "", false
}

// relative converts an absolute path into a path relative to the top of a working tree, as repo.Folders.Relative does.
// The path may also be in another clone of the same code base.
func (in *placed) relative(top, path string) (rel string, ok bool, err error) {
	if rel, ok, err = in.others.Relative(top, path); err != nil || ok {
		return rel, ok, err
	}
	here, err := in.others.PlaceOf(top)
	if err != nil {
		return "", false, err
	}
	return in.others.Relative(here.Path, path)
}

// noProject rewords an ErrNotFound from opening the project of a code base. Because the caller specified no project,
// the error must not suggest specifying a different one. noProject returns any other error unchanged.
func noProject(err error) error {
	var e *refusal.Error
	if !errors.Is(err, refusal.ErrNotFound) || !errors.As(err, &e) {
		return err
	}
	own := *e
	own.What = refusal.NotFound("The code base {name} has no mail project in the store {=other}. {projects below} Create one " +
		"in the code base: `mailtree new project`")
	return &own
}

// adoptInstalled sets the question's store and project to those of the installed guard. It does nothing if no guard is
// installed or if the caller specified another store.
func (c *check) adoptInstalled(ctx context.Context, dir string) {
	if g := installedIn(ctx, dir, c.q.Env); g != nil && (!c.q.Fixed || g.Store == c.q.Store) {
		c.q.Store, c.q.Project = g.Store, g.Project
	}
}

// Enforced returns the slug of the project whose claims are enforced by the guard in dir's repository. It returns "" if
// no guard for that store is installed or the guard cannot be read.
func Enforced(ctx context.Context, dir, store string, env []string) (slug string) {
	if g := installedIn(ctx, dir, env); g != nil && g.Store == store {
		return g.Project
	}
	return ""
}

// installedIn returns the store and project whose claims the guard in dir's repository enforces. It returns nil if no
// guard is installed or the guard cannot be read.
func installedIn(ctx context.Context, dir string, env []string) *guarding {
	r, err := openRepository(ctx, dir, env)
	if err != nil {
		return nil
	}
	f, err := openHooks(r)
	if err != nil {
		return nil
	}
	defer f.close()
	_, h, changed, err := f.installed(PreCommit)
	if err != nil || h == nil || changed {
		return nil
	}
	return &h.Guards[0]
}

// folderBelow returns the path from the top of a working tree to a project's folder, or "" if the folder is the top. If
// the folder is not in the working tree, inside is false.
func folderBelow(top, folder string) (rel string, inside bool) {
	if top == "" || !below(folder, top) {
		return "", false
	}
	return filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(folder, top), "/")), true
}

// below returns the paths that are in the project's folder, relative to that folder.
func (p project) below(paths []string) []string {
	if p.folder == "" {
		return paths
	}
	var all []string
	for _, f := range paths {
		if f, ok := strings.CutPrefix(f, p.folder+"/"); ok {
			all = append(all, f)
		}
	}
	return all
}

// note records in the project that its claims have stopped an agent.
func (p project) note(now time.Time, who identity, doing string, by []Blocked) {
	if len(by) == 0 {
		return
	}
	if who.hint != "" { // the agent does not belong to the project
		who.name = ""
	}
	all := make([]claim.Blocked, len(by))
	for i := range by {
		all[i] = by[i].Blocked
	}
	claim.NoteStopped(p.tree, now, who.name, doing, all)
}

// blocked adds the file and the project to each claim, and makes the blocked paths relative to the top of the working
// tree.
func (p project) blocked(all []claim.Blocked) []Blocked {
	var out []Blocked
	for _, b := range all {
		for i, f := range b.Paths {
			b.Paths[i] = path.Join(p.folder, f)
		}
		out = append(out, Blocked{b, filepath.Join(p.tree.Dir(), b.Claim.Path), p.name})
	}
	return out
}
