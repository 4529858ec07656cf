package repo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mailtree/maildir/tree"
)

// maxFolders is the maximum number of folders in a path to resolve. It is limited because each lookup follows all links
// in the path again.
const maxFolders = 100

// Place is a path's location in relation to working trees.
type Place struct {
	Path string // in the main working tree and without symbolic links; the given path if it is not in a working tree
	Top  string // top of the main working tree; "" if there is none
}

// PlaceOf maps a path inside a linked Git worktree to the same path in the main working tree, so that agents in both
// share one mailbox. If a path leads into a working tree through symbolic links, PlaceOf maps it to the path without
// the links, because Git and most programs report that path. PlaceOf reads only small regular .git files above the
// path. It returns an error only for a machine fault. See docs/settings.md, "Projects".
func PlaceOf(dir string) (Place, error) {
	if strings.Count(dir, "/") > maxFolders {
		return Place{Path: dir}, nil
	}
	real, err := WithoutLinks(dir)
	if err != nil {
		return Place{}, err
	}
	at, err := WorkTree(real)
	if err == nil && at != "" {
		dir = real
	} else if err == nil {
		at, err = WorkTree(dir)
	}
	if err != nil {
		return Place{}, err
	}
	git, common, err := GitFolders(at)
	if err != nil || git == common { // no working tree, an unlinked working tree, or a submodule
		return Place{dir, at}, err
	}
	rel, err := filepath.Rel(at, dir)
	if err != nil {
		return Place{dir, at}, nil
	}
	if filepath.Base(common) == ".git" { // a bare repository has no main working tree, so use its own path
		common = filepath.Dir(common)
	}
	return Place{filepath.Join(common, rel), common}, nil
}

// WithoutLinks returns dir without symbolic links. If dir does not exist, it resolves the parents that exist. It
// returns an error only for a machine fault.
func WithoutLinks(dir string) (string, error) {
	at := dir
	_, err := os.Stat(at) // os.Stat gives up on link loops sooner than filepath does
	for ; errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at); _, err = os.Stat(at) {
		at = filepath.Dir(at)
	}
	if err != nil {
		return dir, tree.MachineFault(err)
	}
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		return dir, tree.MachineFault(err)
	}
	return filepath.Join(real, strings.TrimPrefix(dir, at)), nil
}

// Relative returns an absolute path relative to the folder top of a code base, and "." for top itself. A path in a
// worktree that is linked to top's working tree is treated as the same path in top. For example, the file a in a linked
// worktree becomes a, wherever that worktree is. ok is false if the path is neither in top nor in such a worktree.
// Relative reads the same files as PlaceOf, and returns an error only for a machine fault.
func Relative(top, path string) (rel string, ok bool, err error) {
	rel, ok, _, err = relative(top, path)
	return rel, ok, err
}

// relative is like Relative, but also reports whether the nearest working tree at or above path is a linked one.
func relative(top, path string) (rel string, ok, linked bool, err error) {
	path = filepath.Clean(path)
	rel, ok = relativeTo(top, path)
	linked, err = inLinkedWorkTree(path)
	if err != nil || ok && !linked {
		return rel, ok, linked, err
	}
	at, err := placeOfEntry(path)
	if err != nil {
		return "", false, linked, err
	}
	of, err := PlaceOf(top)
	if err != nil {
		return "", false, linked, err
	}
	if in, is := relativeTo(of.Path, at); is {
		return in, true, linked, nil
	}
	return rel, ok, linked, nil
}

// relativeTo returns path relative to folder, and "." for folder itself.
func relativeTo(folder, path string) (rel string, ok bool) {
	if path == folder {
		return ".", true
	}
	rel, ok = strings.CutPrefix(path, folder+string(filepath.Separator))
	return filepath.ToSlash(rel), ok
}

// inLinkedWorkTree reports whether the nearest working tree at or above path is a linked one.
func inLinkedWorkTree(path string) (bool, error) {
	top, err := WorkTree(path)
	if err != nil {
		return false, err
	}
	git, common, err := GitFolders(top)
	return git != common, err
}

// placeOfEntry returns PlaceOf(path).Path, but does not resolve a path that is itself a symbolic link, because Git
// tracks the link and not its target.
func placeOfEntry(path string) (string, error) {
	fi, err := os.Lstat(path)
	if err := tree.MachineFault(err); err != nil {
		return "", err
	}
	if err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		in, err := PlaceOf(filepath.Dir(path))
		return filepath.Join(in.Path, filepath.Base(path)), err
	}
	at, err := PlaceOf(path)
	return at.Path, err
}
