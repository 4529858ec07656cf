package guard

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"

	"mailtree/maildir/refusal"
)

// git runs the git program in one folder, and prevents it from executing anything that the repository configures.
type git struct {
	dir string   // "" for the working directory
	env []string // the caller's environment; in a hook, it points to the index and the repository

	hooks bool // whether to use the repository's core.hooksPath, which is needed to find the hooks folder
}

// hardened contains arguments that override unsafe settings of the repository.
var hardened = []string{
	"--no-optional-locks", "--no-pager", "--no-replace-objects",
	"-c", "core.fsmonitor=", "-c", "core.untrackedCache=false", "-c", "protocol.allow=never",
}

// shield contains environment variables that prevent Git from fetching missing objects, no matter which transport the
// configuration specifies.
var shield = []string{"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"}

// elsewhere lists the environment variables that Git sets in a hook to direct git commands to the hook's repository.
var elsewhere = []string{
	"GIT_DIR=", "GIT_WORK_TREE=", "GIT_INDEX_FILE=", "GIT_COMMON_DIR=",
	"GIT_OBJECT_DIRECTORY=", "GIT_NAMESPACE=", "GIT_PREFIX=",
}

// outside returns a git that uses the repository of dir. It ignores variables in the caller's environment that would
// direct Git to another repository.
func outside(dir string, env []string) *git {
	g := &git{dir: dir}
	for _, e := range env {
		if !hasAnyPrefix(e, elsewhere) {
			g.env = append(g.env, e)
		}
	}
	return g
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// gitError means that git ran and exited with an error.
type gitError struct {
	args []string
	code int
	text string // the first line of its stderr
}

func (e *gitError) Error() string { return "git " + e.args[0] + " failed: " + e.text }

// NoGit reports whether an error from this package means that there is no git program on the PATH.
func NoGit(err error) bool { return errors.Is(err, exec.ErrNotFound) }

// run returns git's output. It returns a *gitError if git fails, or ErrUnavailable if git cannot be run.
func (g *git) run(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	all := append([]string{}, hardened...)
	if !g.hooks {
		all = append(all, "-c", "core.hooksPath=/dev/null")
	}
	c := exec.CommandContext(ctx, "git", append(all, args...)...)
	c.Dir, c.Stdin = g.dir, stdin
	c.Env = append(append([]string{}, g.env...), shield...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.String(), nil
	case errors.As(err, &exit):
		return out.String(), &gitError{args, exit.ExitCode(), safe(firstLine(errs.String()))}
	}
	text := "Cannot run git: " + safe(err.Error()) + "."
	if NoGit(err) {
		text = "git was not found on the PATH. Install Git 2.34 or newer, then try again."
	}
	return "", &refusal.Own{Kind: refusal.ErrUnavailable, Text: text, Err: err}
}

// line is like run, but returns the single line of output without its line ending.
func (g *git) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.run(ctx, nil, args...)
	return strings.TrimSuffix(out, "\n"), err
}

// names is like run, but returns the list of NUL-terminated names in the output.
func (g *git) names(ctx context.Context, stdin io.Reader, args ...string) ([]string, error) {
	out, err := g.run(ctx, stdin, args...)
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"), nil
}

// exited reports whether git ran and exited with the given status.
func exited(err error, code int) bool {
	var e *gitError
	return errors.As(err, &e) && e.code == code
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if s == "" {
		return "no error message"
	}
	return s
}
