package guard

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/refusal"
	"mailtree/maildir/storedir"
	"mailtree/maildir/tree"
)

// Status describes the guard in the repository, one fact per line, and reports whether the guard works. The guard
// works if pre-commit and pre-merge-commit are guarded and nothing prevents the guard from checking. If the
// repository is missing or invalid, Status returns the same errors as Install.
func Status(ctx context.Context, at Site) (lines []string, works bool, err error) {
	r, err := openRepository(ctx, at.Repo, at.Env)
	if err != nil {
		return nil, false, err
	}
	f, err := openHooks(r)
	if err != nil {
		return nil, false, err
	}
	defer f.close()
	s := status{
		words:  at.Words,
		folder: f,
		works:  true,
		seen:   map[guarding]bool{},
	}
	s.add("repository  %s", safe(r.top))
	where := ""
	if r.config != "" {
		where = " (core.hooksPath is " + safe(r.config) + ")"
	}
	s.add("hooks       %s%s", safe(f.dir), where)
	for _, name := range hookNames {
		s.hook(name)
	}
	return s.lines, s.works, nil
}

type status struct {
	words  refusal.Words
	folder *hooksFolder
	lines  []string
	works  bool
	seen   map[guarding]bool
}

func (s *status) add(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// bad is like add, but for a fact that prevents the guard from working.
func (s *status) bad(format string, args ...any) {
	s.works = false
	s.add(format, args...)
}

func (s *status) hook(name string) {
	label := fmt.Sprintf("%-18s", name)
	file, h, changed, herr := s.folder.installed(name)
	_, fi, err := s.folder.read(file)
	_, before, berr := s.folder.read(name + behind)
	moved, _, merr := s.folder.oursIfAny(name + oldSuffix)
	for _, e := range []error{herr, berr, merr} {
		if err == nil && !errors.Is(e, refusal.ErrConflict) {
			err = e
		}
	}
	switch {
	case err != nil:
		s.bad("%s %v", label, err)
	case changed:
		s.bad("%s was installed by the guard, but has been modified since then and may no longer work", label)
	case h != nil && fi.Mode().Perm()&0o111 == 0:
		s.bad("%s installed by the guard, but not executable, so Git does not run it. Make it "+
			"executable with chmod +x", label)
	case h != nil && file != name:
		s.add("%s guarded: the pre-commit framework's hook runs it as %s", label, file)
		s.guards(h)
	case h != nil && before != nil && before.Mode().Perm()&0o111 == 0:
		s.add("%s guarded; the earlier hook (%s) is not executable, so it does not run", label, name+behind)
		s.guards(h)
	case h != nil && before != nil:
		s.add("%s guarded; the earlier hook (%s) runs first", label, name+behind)
		s.guards(h)
	case h != nil:
		s.add("%s guarded", label)
		s.guards(h)
	case before != nil || moved != nil:
		s.bad("%s LOST: the guard's hook was replaced or removed after it was installed (husky does so at `npm install`, "+
			"lefthook at `lefthook install`). Install the guard again", label)
	case fi != nil:
		s.missing(name, "%s not guarded; another program's hook is installed, and is kept if you install the guard", label)
	default:
		s.missing(name, "%s not guarded", label)
	}
}

// missing is like bad for every hook except pre-push, which is installed only on request.
func (s *status) missing(name, format string, args ...any) {
	if name == PrePush {
		s.add(format, args...)
	} else {
		s.bad(format, args...)
	}
}

// guards adds facts about the program, store and project of a hook.
func (s *status) guards(h *hook) {
	if g := h.Guards[0]; !s.seen[g] {
		s.seen[g] = true
		s.program(h.Program)
		s.claims(g)
	}
}

func (s *status) program(p string) {
	fi, err := os.Stat(p)
	if tree.FaultOf(err) == tree.FaultMachine {
		s.bad("program     %s cannot be checked: %v", safe(p), err)
	} else if err == nil && fi.Mode().IsRegular() && fi.Mode().Perm()&0o111 != 0 {
		s.add("program     %s", safe(p))
	} else if other, err := exec.LookPath("mailtree"); err == nil {
		s.add("program     %s is missing or not executable; the hooks use %s instead. To fix this, "+
			"install the guard again", safe(p), safe(other))
	} else {
		s.bad("program     %s is missing or not executable, and mailtree is not on the PATH, so nothing is "+
			"checked. Install the guard again", safe(p))
	}
}

func (s *status) claims(g guarding) {
	t, slug, err := storedir.OpenProject(g.Store, g.Project, storedir.Scope{})
	if errors.Is(err, refusal.ErrNotFound) {
		s.bad("project     %s is no longer in the store %s, so nothing is checked. Install the guard again", safe(g.Project), safe(g.Store))
		return
	}
	if err != nil {
		s.bad("project     %s Nothing is checked", s.words.Explain(err))
		return
	}
	defer t.Close()
	now := time.Now()
	live, bad, err := claim.Files(t, func(c *claim.Row) bool { return c.Live(now) })
	if err != nil {
		s.bad("project     %s Nothing is checked", s.words.Explain(err))
		return
	}
	s.add("project     %s in %s", slug, safe(g.Store))
	s.add("claims      %d live", len(live))
	for _, p := range bad[:min(len(bad), mostPaths)] {
		s.add("            ignoring the invalid file %s: %s", safe(p.Path), safe(p.Reason))
	}
}
