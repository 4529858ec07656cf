// Package repo examines the code repository that contains a path. It finds the top of the working tree (WorkTree), and
// the same path in the main working tree (PlaceOf) or in the folder that names the project (Folders). It reports
// whether the repository ignores case in paths (Codebase.IgnoresCase), so that the server and the guard get the same
// result. It also reports what is at a path in the repository (Codebase.Look, View), which files Git tracks (Tracked),
// and what identifies the repository (FirstCommits, RemoteURL).
//
// The package reads small files. The only programs that it runs are `git ls-files` and `git rev-list`, with options
// that prevent Git from running programs configured in the repository.
package repo

import (
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

// Codebase reads a project's code repository. It only reads small files and does not run Git, because a repository's
// configuration can make Git run programs.
type Codebase struct {
	mu    sync.Mutex
	file  string        // path of the configuration file that was last read
	stat  tree.FileStat // the file's state when it was read
	fold  bool
	dir   string          // the folder that files refers to
	files map[string]bool // cached results of isFile for paths below dir
	until time.Time       // when files expires
}

// filesFresh is how long the state of files in the working tree is cached. The cache exists because a single request
// may involve thousands of claims.
const filesFresh = 5 * time.Second

// maxConfig is the maximum size, in bytes, of a repository configuration file to read. A typical file contains a few
// hundred bytes.
const maxConfig = 1 << 20

// IgnoresCase reports whether the repository at or above dir has core.ignorecase set in its configuration. git init and
// git clone set it on a file system that ignores case. If the configuration cannot be read, IgnoresCase treats it as
// unset. It does not read included files. If the file is unchanged, a call costs only a few stat calls. IgnoresCase is
// safe for concurrent use. It returns an error only for a machine fault.
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

// Look returns a function isFile that reports whether a path below dir leads to a file, or to anything else that is not
// a folder. dir must be in a Git working tree. The results of isFile may be a few seconds old. Only one goroutine may
// use isFile, and it must call done at the end. If isFile ran into a machine fault, done returns the fault, and the
// results of isFile are invalid.
func (c *Codebase) Look(dir string) (isFile func(path string) bool, done func() error) {
	var root *os.Root
	var fault error
	opened := false
	isFile = func(path string) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		if now := time.Now(); now.After(c.until) || dir != c.dir {
			c.dir, c.files, c.until = dir, map[string]bool{}, now.Add(filesFresh)
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

// lookFault returns err if it is a machine fault. os.Root also returns an error for a link that points outside the
// working tree. That is not a fault: such a path is treated as missing.
func lookFault(err error) error {
	if no := syscall.Errno(0); !errors.As(err, &no) {
		return nil
	}
	return tree.MachineFault(err)
}

// WorkTree returns the top of the Git working tree at or above dir, or "" if there is none. Any folder with an entry
// named .git is treated as the top of a working tree. WorkTree returns an error only for a machine fault
// (tree.FaultOf).
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

// linkedWorkTree returns the top of the working tree at or above dir if Git has linked that tree to the working tree
// whose top is main. Otherwise, linkedWorkTree returns "". It returns an error only for a machine fault.
func linkedWorkTree(dir, main string) (string, error) {
	real, err := WithoutLinks(filepath.Clean(dir))
	if err != nil {
		return "", err
	}
	at, err := WorkTree(real)
	if err != nil {
		return "", err
	}
	git, common, err := GitFolders(at)
	if err != nil || git == common {
		return "", err
	}
	if of, err := PlaceOf(at); err != nil || of.Path != main && of.Bare != main {
		return "", err
	}
	return at, nil
}

// GitFolders returns the Git folder of the working tree with the given top, and the common Git folder that linked
// worktrees share. If the tree is not a linked worktree, git and common are the same folder. If there is no Git folder
// or .git cannot be read, they are empty. GitFolders returns an error only for a machine fault.
func GitFolders(top string) (git, common string, err error) {
	if git, err = gitFolder(top); err != nil || git == "" {
		return "", "", err
	}
	shared, err := smallFile(filepath.Join(git, "commondir"))
	if err != nil {
		return "", "", err
	}
	if shared == "" {
		return git, git, nil
	}
	common = filepath.Clean(below(git, shared))
	linked, err := isLinked(top, git, common)
	if err != nil || !linked {
		return git, git, err
	}
	return git, common, nil
}

// gitFolder returns the .git folder in top, or the folder that the .git file in top points to. It returns "" if there
// is no such folder. It returns an error only for a machine fault.
func gitFolder(top string) (string, error) {
	if top == "" {
		return "", nil
	}
	git := filepath.Join(top, ".git")
	fi, err := os.Stat(git)
	if err == nil && fi.IsDir() {
		return git, nil
	}
	if err := tree.MachineFault(err); err != nil {
		return "", err
	}
	text, err := smallFile(git)
	to, ok := strings.CutPrefix(text, "gitdir: ")
	if err != nil || !ok {
		return "", err
	}
	return below(top, to), nil
}

// isLinked reports whether the worktree at top is linked to the repository with the Git folder common. git is the
// folder that the .git file in top points to. Git records the worktree's path in that folder. If the recorded path is
// that of another worktree that also uses git, the .git file in top is a copy, so top is not linked. A worktree that
// was moved without Git is still linked. isLinked returns an error only for a machine fault.
func isLinked(top, git, common string) (bool, error) {
	if filepath.Dir(git) != filepath.Join(common, "worktrees") {
		return false, nil
	}
	back, err := smallFile(filepath.Join(git, "gitdir"))
	if err != nil || back == "" {
		return false, err
	}
	noted := filepath.Dir(below(git, back))
	at, err := WithoutLinks(top)
	if err != nil {
		return false, err
	}
	if real, err := WithoutLinks(noted); err != nil || real == at {
		return err == nil, err
	}
	user, err := gitFolder(noted)
	return user != git, err
}

// below joins dir and p if p is relative. Otherwise it returns p.
func below(dir, p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(dir, p)
}

// setting is a line of a repository's configuration.
type setting struct {
	section string // name of the section in lower case, such as core
	sub     string // name of the subsection, such as origin in [remote "origin"]; empty if there is none
	key     string // in lower case
	value   string // without quotation marks
	given   bool   // the line has a value; a key alone means true
}

// settings reads the settings in the text of a configuration file, in order. It does not follow includes, and it does
// not read values that continue on the next line.
func settings(text string) (all []setting) {
	var in setting
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			head, rest, _ := strings.Cut(line[1:], "]")
			name, sub, _ := strings.Cut(strings.TrimSpace(head), " ")
			in = setting{section: strings.ToLower(name), sub: strings.Trim(strings.TrimSpace(sub), `"`)}
			line = strings.TrimSpace(rest)
		}
		if end := strings.IndexAny(line, "#;"); end >= 0 {
			line = line[:end]
		}
		key, value, given := strings.Cut(line, "=")
		if key = strings.ToLower(strings.TrimSpace(key)); key == "" {
			continue
		}
		s := in
		s.key, s.value, s.given = key, strings.Trim(strings.TrimSpace(value), `"`), given
		all = append(all, s)
	}
	return all
}

// configIgnoresCase reads core.ignorecase from the text of a configuration file. The last setting wins.
func configIgnoresCase(text string) (is bool) {
	for _, s := range settings(text) {
		if s.section == "core" && s.sub == "" && s.key == "ignorecase" {
			is = !s.given || isTrue(strings.TrimSpace(s.value))
		}
	}
	return is
}

// isTrue parses a boolean as Git does.
func isTrue(v string) bool {
	switch strings.ToLower(v) {
	case "true", "yes", "on":
		return true
	}
	n, err := strconv.Atoi(v)
	return err == nil && n != 0
}

// smallFile returns the content of a text file of up to 4 KiB, or "" if there is no such file. It returns an error only
// for a machine fault.
func smallFile(name string) (string, error) {
	data, _, err := tree.ReadPlain(name, 4096)
	if err != nil {
		return "", tree.MachineFault(err)
	}
	return strings.TrimSpace(string(data)), nil
}
