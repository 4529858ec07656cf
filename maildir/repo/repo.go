// Package repo answers what the mail asks about the code repository that a path lies in: the top of
// its work tree (WorkTree), the same path in the main work tree (PlaceOf), whether letters match
// whatever their case (Codebase.IgnoresCase, one answer for server and guard), what lies at a path
// there (Codebase.Look, Codebase.Exists), and which files Git tracks (Tracked).
//
// It reads small files, and runs nothing but `git ls-files` where nothing that the repository
// configures can run.
package repo

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"mailtree/maildir/tree"
)

// Codebase is what the mail asks about the code repository that a project is named by. It only
// reads small files, and asks Git nothing: what a repository configures may run programs.
type Codebase struct {
	mu    sync.Mutex
	file  string        // the configuration last read
	stat  tree.FileStat // as it was then
	fold  bool
	files map[string]bool // what was found at paths below the top
	until time.Time       // how long that counts
}

// filesFresh is how long it counts what was found in the work tree: thousands of claims are looked
// up for one answer.
const filesFresh = 5 * time.Second

// maxConfig is how much of a repository's configuration is looked at, in bytes: people's are a few
// hundred.
const maxConfig = 1 << 20

// IgnoresCase reports whether the Git work tree at or above dir says core.ignorecase in its
// repository's configuration, as git init and git clone write it where the file system is such a
// one. What cannot be read says nothing; files that it includes are not looked at. It costs a few
// looks at folders where the file is as it was. Safe for concurrent use. Errors: the machine's
// faults.
func (c *Codebase) IgnoresCase(dir string) (bool, error) {
	top, err := WorkTree(dir)
	if err != nil {
		return false, err
	}
	_, common, err := GitFolders(top)
	if err != nil || common == "" {
		return false, err
	}
	file := filepath.Join(common, "config")
	fi, err := os.Stat(file)
	if err != nil {
		return false, tree.MachineFault(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if file == c.file && tree.StatOfInfo(fi) == c.stat {
		return c.fold, nil
	}
	data, st, err := tree.ReadPlain(file, maxConfig)
	if err != nil {
		return false, tree.MachineFault(err)
	}
	c.file, c.stat, c.fold = file, st, configIgnoresCase(string(data))
	return c.fold, nil
}

// Look returns a function that reports whether dir, which lies in a Git work tree, has something
// other than a folder at a path below it, as it was found in the last seconds; done ends its use,
// by one goroutine. Errors of done: a fault of the machine's that isFile met, so that what it said
// does not count.
func (c *Codebase) Look(dir string) (isFile func(path string) bool, done func() error) {
	var root *os.Root
	var fault error
	opened := false
	isFile = func(path string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if now := time.Now(); now.After(c.until) {
			c.files, c.until = map[string]bool{}, now.Add(filesFresh)
		}
		is, known := c.files[path]
		if known {
			return is
		}
		if !opened {
			opened = true
			root, fault = openInWorkTree(dir)
		}
		if fault == nil && root != nil {
			fi, err := root.Lstat(filepath.FromSlash(path))
			is, fault = err == nil && !fi.IsDir(), lookFault(err)
		}
		if fault == nil {
			c.files[path] = is
		}
		return is
	}
	return isFile, func() error {
		if root != nil {
			root.Close()
		}
		return fault
	}
}

// Exists calls f with a function that reports whether dir, which lies in a Git work tree, has
// anything at a path below it. Errors: f's, and a fault of the machine's that the function met, so
// that what it said does not count.
func (c *Codebase) Exists(dir string, f func(exists func(path string) bool) error) error {
	root, err := openInWorkTree(dir)
	if err != nil {
		return err
	}
	if root == nil {
		return f(func(string) bool { return false })
	}
	defer root.Close()
	var fault error
	err = f(func(path string) bool {
		if fault != nil || !filepath.IsLocal(path) {
			return false
		}
		_, err := root.Lstat(filepath.FromSlash(path))
		fault = lookFault(err)
		return err == nil
	})
	return cmp.Or(fault, err)
}

// lookFault is a fault of the machine that kept one from looking below a work tree. A link that leads
// out of it is none, though os.Root has an error for it: nothing lies there.
func lookFault(err error) error {
	if no := syscall.Errno(0); !errors.As(err, &no) {
		return nil
	}
	return tree.MachineFault(err)
}

// openInWorkTree opens dir where it lies in a work tree; nil where it does not, or is not there.
// Errors: the machine's faults.
func openInWorkTree(dir string) (*os.Root, error) {
	top, err := WorkTree(dir)
	if err != nil || top == "" {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, tree.MachineFault(err)
	}
	return root, nil
}

// WorkTree is the top of the Git work tree at or above dir; "" where there is none. Whatever is
// called .git makes one. Errors: the machine's faults (tree.FaultOf), when it cannot be told.
func WorkTree(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	for at := dir; ; at = filepath.Dir(at) {
		_, err := os.Lstat(filepath.Join(at, ".git"))
		if err == nil {
			return at, nil
		}
		if err := tree.MachineFault(err); err != nil || at == filepath.Dir(at) {
			return "", err
		}
	}
}

// LinkedWorkTree is the top of the work tree at or above dir where that is linked to the one with
// the top main, and Git has noted it there, whatever its .git says; else "". Errors: the machine's
// faults.
func LinkedWorkTree(dir, main string) (string, error) {
	if !filepath.IsAbs(dir) || main == "" {
		return "", nil
	}
	real, err := WithoutLinks(filepath.Clean(dir))
	if err != nil {
		return "", err
	}
	at, err := WorkTree(real)
	if err != nil {
		return "", err
	}
	git, common, err := GitFolders(at)
	if err != nil || git == common || filepath.Dir(git) != filepath.Join(common, "worktrees") {
		return "", err
	}
	if of, err := PlaceOf(at); err != nil || of.Path != main {
		return "", err
	}
	back, err := smallFile(filepath.Join(git, "gitdir"))
	if err != nil || back == "" {
		return "", err
	}
	if noted, err := WithoutLinks(filepath.Dir(below(git, back))); err != nil || noted != at {
		return "", err
	}
	return at, nil
}

// GitFolders returns the Git folder of the work tree with that top, and the one that it shares with
// those linked to it, the same where it is alone; "" for both where there is none, or its .git
// cannot be read. Errors: the machine's faults.
func GitFolders(top string) (git, common string, err error) {
	if top == "" {
		return "", "", nil
	}
	git = filepath.Join(top, ".git")
	if fi, err := os.Stat(git); err != nil || !fi.IsDir() {
		if err := tree.MachineFault(err); err != nil {
			return "", "", err
		}
		text, err := smallFile(git)
		to, ok := strings.CutPrefix(text, "gitdir: ")
		if err != nil || !ok {
			return "", "", err
		}
		git = below(top, to)
	}
	shared, err := smallFile(filepath.Join(git, "commondir"))
	if err != nil {
		return "", "", err
	}
	if shared != "" {
		return git, filepath.Clean(below(git, shared)), nil
	}
	return git, git, nil
}

// below is p, seen from dir where it is relative.
func below(dir, p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(dir, p)
}

// configIgnoresCase reads core.ignorecase out of a configuration file; the last one counts.
func configIgnoresCase(text string) (is bool) {
	core := false
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, _ := strings.Cut(line[1:], "]")
			core, line = strings.EqualFold(strings.TrimSpace(head), "core"), strings.TrimSpace(rest)
		}
		if end := strings.IndexAny(line, "#;"); end >= 0 {
			line = line[:end]
		}
		key, value, given := strings.Cut(line, "=")
		if core && strings.EqualFold(strings.TrimSpace(key), "ignorecase") {
			is = !given || isTrue(strings.Trim(value, " \t\""))
		}
	}
	return is
}

// isTrue reads a value as Git reads booleans.
func isTrue(v string) bool {
	switch strings.ToLower(v) {
	case "true", "yes", "on":
		return true
	}
	n, err := strconv.Atoi(v)
	return err == nil && n != 0
}

// smallFile reads a text of at most 4 KiB; "" where there is none. Errors: the machine's faults.
func smallFile(name string) (string, error) {
	data, _, err := tree.ReadPlain(name, 4096)
	if err != nil {
		return "", tree.MachineFault(err)
	}
	return strings.TrimSpace(string(data)), nil
}
