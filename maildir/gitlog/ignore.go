package gitlog

import (
	"errors"
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

// unread returns an error if Git says that it could not look at something that is there and that it may look at. A folder that a
// person has just removed, or replaced by a file, is named by Git in a warning too.
func unread(said string) error {
	known := func(line string) bool {
		return strings.Contains(line, "Permission denied") ||
			strings.Contains(line, "No such file or directory") || strings.Contains(line, "Not a directory")
	}
	for line := range strings.Lines(said) {
		if !known(line) {
			return errors.New("git could not look at everything: " + oneLine(line, 200))
		}
	}
	return nil
}

// copyExclude gives our commands the patterns of .git/info/exclude: they see a folder of ours.
func (r *repository) copyExclude() error {
	b, err := readSmall(r.path("info/exclude"))
	if err = errors.Join(tree.IgnoreGone(err), r.makeOwn()); err != nil {
		return err
	}
	return r.putOwn("info/exclude", string(b))
}
