package guard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"mailtree/maildir/refusal"
)

// repository is a code repository with its hooks folder.
type repository struct {
	git    *git
	top    string // the top folder of the working tree
	common string // the .git folder shared by all worktrees of the repository; links are resolved
	hooks  string // the hooks folder; links are resolved as far as the path exists
	config string // core.hooksPath; "" if it is not set
	place  place
}

// place describes where a hooks folder is.
type place int

const (
	own        place = iota // inside .git
	insideTree              // inside the working tree
	shared                  // outside both; other repositories may use it too
)

func invalid(format string, args ...any) error {
	return &refusal.Own{Kind: refusal.ErrInvalid, Text: fmt.Sprintf(format, args...)}
}

func conflict(format string, args ...any) error {
	return &refusal.Own{Kind: refusal.ErrConflict, Text: fmt.Sprintf(format, args...)}
}

func denied(format string, args ...any) error {
	return &refusal.Own{Kind: refusal.ErrDenied, Text: fmt.Sprintf(format, args...)}
}

// notGuardable returns a refusal for a path whose repository cannot be guarded.
func notGuardable(what refusal.What, path string) *refusal.Error {
	return &refusal.Error{What: what, Field: refusal.Repository, Name: path}
}

// openRepository examines the repository that contains path. It returns ErrNotFound if path is not a readable folder,
// and ErrInvalid if it is not in a working tree.
func openRepository(ctx context.Context, path string, env []string) (*repository, error) {
	if !utf8.ValidString(path) || strings.ContainsRune(path, 0) {
		return nil, notGuardable(refusal.Invalid("{name} {arg} cannot be the path of a repository: specify the path of a Git "+
			"working tree."), path)
	}
	if fi, err := os.Stat(path); err != nil || !fi.IsDir() {
		return nil, notGuardable(refusal.NotFound("{name} {arg} is not a readable folder: specify the path of a Git working tree."), path)
	}
	r := &repository{git: outside(path, env)}
	bare, err := r.git.line(ctx, "rev-parse", "--is-bare-repository", "--is-inside-work-tree")
	switch {
	case errors.Is(err, refusal.ErrUnavailable): // git is not installed
		return nil, err
	case err != nil:
		e := notGuardable(refusal.Invalid("{name} {arg} is not a usable Git working tree ({why}): specify the path "+
			"of another working tree."), path)
		e.Why = err.Error()
		return nil, e
	case bare == "true\nfalse":
		return nil, notGuardable(refusal.Invalid("{name} {arg} is a bare repository. Commits are made in "+
			"its working trees: install the guard there."), path)
	case bare != "false\ntrue":
		return nil, notGuardable(refusal.Invalid("{name} {arg} is in the .git folder of a repository: specify the path of "+
			"its working tree."), path)
	}
	if r.top, err = r.git.line(ctx, "rev-parse", "--show-toplevel"); err != nil {
		return nil, err
	}
	r.git.dir = r.top
	common, err := r.git.line(ctx, "rev-parse", "--git-common-dir")
	if err != nil {
		return nil, err
	}
	if r.common, err = filepath.EvalSymlinks(rooted(r.top, common)); err != nil {
		return nil, err
	}
	return r, r.findHooks(ctx)
}

// findHooks finds the folder from which Git runs hooks.
func (r *repository) findHooks(ctx context.Context) error {
	asking := &git{dir: r.top, env: r.git.env, hooks: true}
	v, err := asking.run(ctx, nil, "config", "-z", "--type=path", "--get", "core.hooksPath")
	if err != nil && !exited(err, 1) {
		return err
	}
	r.config = strings.TrimSuffix(v, "\x00")
	r.hooks = filepath.Join(r.common, "hooks")
	if r.config != "" {
		r.hooks = rooted(r.top, r.config)
	}
	real, err := filepath.EvalSymlinks(r.hooks)
	switch {
	case err == nil:
		r.hooks = real
	case !errors.Is(err, fs.ErrNotExist):
		return invalid("The hooks folder %s of %s cannot be used: fix core.hooksPath.", safe(r.hooks), safe(r.top))
	default: // parents of the missing folder may be links
		dir, base := filepath.Split(r.hooks)
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			r.hooks = filepath.Join(real, base)
		}
	}
	if fi, err := os.Stat(r.hooks); err == nil && !fi.IsDir() {
		return invalid("Hooks are turned off in %s: core.hooksPath is %s, which is not a folder. Turn them on with `git "+
			"config --unset core.hooksPath`.", safe(r.top), safe(r.config))
	}
	top, err := filepath.EvalSymlinks(r.top)
	switch {
	case below(r.hooks, r.common):
		r.place = own
	case err == nil && below(r.hooks, top):
		r.place = insideTree
	default:
		r.place = shared
	}
	return nil
}

func below(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, dir+string(filepath.Separator))
}

// writable returns an error for a hooks folder that Git tracks or that does not belong to this repository alone. The
// error contains a line that the user can add to the hooks in such a folder.
func (r *repository) writable(ctx context.Context, s Setup) error {
	const line = "Add this line to the end of %s and pre-merge-commit:\n  mailtree guard check --hook pre-commit%s || exit"
	to, store := safe(filepath.Join(r.hooks, PreCommit)), " --store "+ShellWord(s.Store)
	switch r.place {
	case shared:
		return denied("The hooks of %s are in %s (core.hooksPath), outside the repository. Other repositories may use that folder "+
			"too, so the guard does not write there. You can add the check by hand. In each "+
			"repository, the check uses the claims of that repository's project. "+line,
			safe(r.top), safe(r.hooks), to, store)
	case insideTree:
		tracked, err := r.git.names(ctx, nil, "--literal-pathspecs", "ls-files", "-z", "--", r.hooks)
		if err != nil {
			return err
		}
		if s.Project != "" {
			store += " --project " + ShellWord(s.Project)
		}
		if len(tracked) > 0 {
			return denied("The hooks of %s are in %s (core.hooksPath), which Git tracks. The guard's hooks contain "+
				"machine-specific paths and must not be committed. "+line, safe(r.top), safe(r.hooks), to, store)
		}
	}
	return nil
}
