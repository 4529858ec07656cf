package guard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/storedir"
)

// editing is the value of Question.Hook for an edit. Git has no hook for edits.
const editing = "edit"

// Edit describes a change that an agent is about to make to files. Now and Program may be zero.
type Edit struct {
	Store   string                 // absolute path
	Usual   string                 // as in Question
	Scope   storedir.Scope         // as in Question
	Dir     string                 // the folder in which the agent works
	Agent   func() (string, error) // returns the agent that is editing, or "" if unknown
	Paths   []string               // absolute paths
	Env     []string               // CLAIM_MODE, GUARD_UNKNOWN, GUARD_BYPASS
	Now     time.Time              // zero means the current time
	Program string                 // as in Question
	Words   refusal.Words          // as in Question
}

// CheckEdit checks whether the agent may change the files. If it may not, deny says why. If it may, warn says what the
// agent should know about the files. If no claim or hold applies, both are "". CheckEdit needs neither a server nor
// Git. A commit of the files would be subject to the same claims and holds. See docs/reference/guard.md,
// "Before the edit".
func CheckEdit(e Edit) (deny, warn string) {
	if e.Now.IsZero() {
		e.Now = time.Now()
	}
	pol, err := readPolicy(e.Env, "CLAIM_MODE")
	if err == nil && (pol.mode == "off" || pol.bypass) {
		return "", ""
	}
	var text strings.Builder
	r := report{w: &text, q: &Question{
		Store:   e.Store,
		Usual:   e.Usual,
		Scope:   e.Scope,
		Dir:     e.Dir,
		Hook:    editing,
		Now:     e.Now,
		Program: e.Program,
		Words:   e.Words,
	}}
	var found []Blocked
	var held *Held
	if err == nil {
		held, found, r.who, err = e.blocking(pol)
	}
	stops := false
	switch {
	case err != nil:
		stops = pol.sure && pol.mode == "block"
		r.unchecked(err, stops)
	case held != nil:
		stops = pol.stops(r.who)
		r.held(held, !stops)
	case len(found) > 0:
		stops = pol.stops(r.who)
		r.blocked(found, !stops)
	}
	if stops {
		return text.String(), ""
	}
	return "", text.String()
}

// blocking returns the agent's hold or, if there is none, other agents' claims that cover at least one of the files.
// It considers every project whose folder contains one of the files. It also returns the identity of the agent that
// is editing.
func (e Edit) blocking(pol policy) (held *Held, all []Blocked, who identity, err error) {
	projects, err := storedir.ProjectNames(e.Store)
	if err != nil {
		return nil, nil, who, err
	}
	others, err := othersOf(e.Store, e.Scope, projects)
	if err != nil {
		return nil, nil, who, err
	}
	var files []alias
	for _, p := range e.Paths {
		seen, err := aliases(p, others)
		if err != nil {
			return nil, nil, who, err
		}
		files = append(files, seen...)
	}
	for _, n := range projects {
		paths := belowProject(n.HumanKey, files)
		if len(paths) == 0 {
			continue
		}
		held, found, asks, err := e.lookUp(pol, n, paths)
		if held != nil {
			return held, nil, asks, nil
		}
		if err != nil {
			return nil, nil, who, err
		}
		if len(all) == 0 {
			who = asks
		}
		all = merge(all, found)
	}
	return nil, all, who, nil
}

// lookUp returns the agent's hold in one project or, if there is none, the claims that block the paths. The paths are
// relative to the project's folder.
func (e Edit) lookUp(pol policy, n storedir.ProjectName, paths []string) (held *Held, found []Blocked, who identity, err error) {
	t, err := storedir.OpenTree(e.Store, n.Slug, 0)
	if errors.Is(err, fs.ErrNotExist) { // the project was removed after the projects were listed
		return nil, nil, who, nil
	}
	if err != nil {
		return nil, nil, who, err
	}
	defer t.Close()
	name, err := e.Agent()
	if err != nil {
		return nil, nil, who, err
	}
	if who, err = agentOf(t, "Your name", name); err != nil {
		return nil, nil, who, err
	}
	p := project{tree: t, name: n.HumanKey}
	if held, _, err = p.held(who.name, e.Now); held != nil || err != nil {
		return held, nil, who, err
	}
	fold, err := new(repo.Codebase).IgnoresCase(n.HumanKey)
	if err != nil {
		return nil, nil, who, err
	}
	claims, _, err := claim.Files(t, claim.NewIntent("", paths, fold, e.Now).Concerns)
	if err != nil || len(claims) == 0 {
		return nil, nil, who, err
	}
	found = p.blocked(claim.NewIntent(who.name, paths, fold, e.Now).Blocking(claims))
	if pol.stops(who) {
		p.note(e.Now, who, editing, found)
	}
	return nil, found, who, nil
}

// alias is an absolute path of a file, together with the top folder of the working tree that contains the path. If the
// path is not in a working tree, top is "".
type alias struct{ path, top string }

// aliases lists the paths by which projects may refer to a file. These are the given path, the path with links
// resolved, the path in the main working tree, and the path in the folder that names the project. If the file is a
// link, aliases also lists the paths of the link's target. It returns an error only for a machine fault (tree.FaultOf).
func aliases(file string, others repo.Folders) (all []alias, err error) {
	dir, base := filepath.Split(filepath.Clean(file))
	dir = filepath.Clean(dir)
	top, err := repo.WorkTree(dir)
	if err != nil {
		return nil, err
	}
	all = []alias{{filepath.Join(dir, base), top}}
	add := func(dir, base string) error {
		for _, in := range []repo.Folders{nil, others} {
			at, err := in.PlaceOf(dir)
			if err != nil {
				return err
			}
			all = append(all, alias{filepath.Join(at.Path, base), at.Top})
			if at.Bare != "" {
				all = append(all, alias{filepath.Join(at.Bare, base), at.BareTop})
			}
		}
		return nil
	}
	if err := add(dir, base); err != nil {
		return nil, err
	}
	if fi, err := os.Lstat(file); err == nil && fi.Mode()&os.ModeSymlink != 0 {
		return all, add(file, "")
	}
	return all, nil
}

// belowProject lists the files in a project's folder, relative to that folder. Like the check of a commit, belowProject
// skips a file if the project's folder is not in the file's working tree.
func belowProject(folder string, files []alias) (paths []string) {
	for _, f := range files {
		if folder == "" || f.path == folder || !below(f.path, folder) || f.top != "" && !below(folder, f.top) {
			continue
		}
		if rel, ok := folderBelow(folder, f.path); ok && !slices.Contains(paths, rel) {
			paths = append(paths, rel)
		}
	}
	return paths
}
