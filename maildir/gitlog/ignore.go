package gitlog

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"unicode"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// committable reports whether Git may have that path at all. Names that some system takes for .git
// would make `git fsck` fail and a checkout elsewhere dangerous; .gitmodules is left to the person
// for the same reason.
func committable(path string) bool {
	for i, name := range strings.Split(path, "/") {
		if name == "" || name == "." || name == ".." || isGitFolder(name) || strings.EqualFold(name, ".gitmodules") {
			return false
		}
		if i == 0 && name == format.RunDir {
			return false
		}
	}
	return !strings.ContainsRune(path, 0)
}

// isGitFolder reports whether name is .git to Git, on NTFS or on HFS+.
func isGitFolder(name string) bool {
	name, _, _ = strings.Cut(name, ":")
	name = strings.TrimRight(name, " .")
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, name)
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}

// dangerousLink: fsck refuses links with such names.
func dangerousLink(path string) bool {
	name := strings.ToLower(path[strings.LastIndexByte(path, '/')+1:])
	return strings.HasPrefix(name, ".git") || strings.HasPrefix(name, ".mailmap")
}

// ignorer asks `git check-ignore` whether .gitignore files and .git/info/exclude, as they are now, name
// an untracked path. A nil one says no to all. Whoever makes one calls endAsking.
type ignorer struct {
	repo  *repository
	files *tree.Tree
	fault error // why the answers do not count
	talk
	cancel context.CancelFunc
	said   bytes.Buffer
}

func (g *ignorer) startAsking() error {
	if err := g.repo.copyExclude(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(g.repo.ctx, commandLimit)
	c, err := g.repo.command(ctx, "check-ignore", "-z", "--stdin", "--verbose", "--non-matching", "--no-index")
	if err == nil {
		c.Stderr = &g.said
		g.talk, err = startTalk(c)
	}
	if err != nil {
		cancel()
		return err
	}
	g.cancel = cancel
	return nil
}

// match reports whether a path is left out: by a pattern for it or for a folder above it, or because
// it lies in a nested repository.
func (g *ignorer) match(path string) bool {
	if g == nil || g.fault != nil {
		return false
	}
	for i := range path {
		if path[i] != '/' {
			continue
		}
		_, err := g.files.Stat(path[:i] + "/.git")
		if err == nil {
			return true
		}
		if transient(err) {
			g.fault = err
			return false
		}
	}
	pattern, err := g.pattern(path)
	g.fault = err
	return pattern != "" && !strings.HasPrefix(pattern, "!")
}

// pattern is the one that decides; "": there is none.
func (g *ignorer) pattern(path string) (pattern string, err error) {
	if g.cmd == nil {
		if err := g.startAsking(); err != nil {
			return "", err
		}
	}
	if _, err := io.WriteString(g.ask, path+"\x00"); err != nil {
		return "", err
	}
	for i := range 4 { // source, line, pattern, path
		field, err := g.tell.ReadString(0)
		if err != nil {
			return "", err
		}
		if i == 2 {
			pattern = strings.TrimSuffix(field, "\x00")
		}
	}
	return pattern, nil
}

// endAsking ends the program and returns why its answers do not count.
func (g *ignorer) endAsking() error {
	if g == nil {
		return nil
	}
	if g.cmd != nil {
		_ = g.hangUp()
		g.cancel()
		if g.fault == nil {
			g.fault = unread(g.said.String())
		}
	}
	return g.fault
}

// unread is an error where Git says that it could not look at something that it may look at.
func unread(said string) error {
	for line := range strings.Lines(said) {
		if !strings.Contains(line, "Permission denied") {
			return errors.New("git could not look at everything: " + oneLine(line, 200))
		}
	}
	return nil
}

const maxIgnore = 1 << 20

// copyExclude gives our commands the patterns of .git/info/exclude, which Git itself would open as it
// is. Where it is no file there are none.
func (r *repository) copyExclude() error {
	b, err := readRegular(r.path("info/exclude"), maxIgnore)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotFile) {
		return err
	}
	if err := r.makeOwn(); err != nil {
		return err
	}
	return r.putOwn("info/exclude", string(b))
}
