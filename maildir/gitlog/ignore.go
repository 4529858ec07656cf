package gitlog

import (
	"errors"
	"strings"
	"unicode"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// committable reports whether the path may be committed. A name that some systems treat as .git would make `git fsck`
// fail, and would make a checkout on those systems dangerous. For the same reason, only users may commit .gitmodules.
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

// isGitFolder reports whether Git treats name as .git, including on NTFS and HFS+.
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

// dangerousLink reports whether git fsck would reject a symbolic link at path.
func dangerousLink(path string) bool {
	name := strings.ToLower(path[strings.LastIndexByte(path, '/')+1:])
	return strings.HasPrefix(name, ".git") || strings.HasPrefix(name, ".mailmap")
}

// unread returns an error if Git's warnings say that Git could not read a file or folder. It ignores warnings about
// missing permission, and about files and folders that a user has just removed or replaced.
func unread(said string) error {
	known := func(line string) bool {
		return strings.Contains(line, "Permission denied") ||
			strings.Contains(line, "No such file or directory") || strings.Contains(line, "Not a directory")
	}
	for line := range strings.Lines(said) {
		if !known(line) {
			return errors.New("Git could not read all files: " + oneLine(line, 200))
		}
	}
	return nil
}

// copyExclude copies .git/info/exclude into ownFolder, where our commands look for patterns.
func (g *gitProgram) copyExclude() error {
	b, err := readSmall(g.path("info/exclude"))
	if err = errors.Join(tree.IgnoreGone(err), g.makeOwn()); err != nil {
		return err
	}
	return g.putOwn("info/exclude", string(b), 0o600)
}
