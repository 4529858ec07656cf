package repo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mailtree/maildir/tree"
)

// maxFolders is the maximum number of folders in a path that is resolved. Each lookup follows all links of the path
// again.
const maxFolders = 100

// Place is the location of a path with respect to work trees.
type Place struct {
	Path string // in the main work tree and without symbolic links; the given path if it is not in a work tree
	Top  string // top of the main work tree; "" if there is none
}

// PlaceOf maps a path inside a linked Git work tree to the same path in the main work tree, so that agents in two
// work trees share one mailbox. If a path leads through symbolic links into a work tree, PlaceOf maps it to the
// path without the links, because Git and most programs report that path. It reads only small regular .git files
// above the path. It returns an error only for a fault of the machine. See docs/settings.md, "Projects".
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
	if err != nil || git == common { // no work tree, a work tree that is not linked, or a submodule
		return Place{dir, at}, err
	}
	rel, err := filepath.Rel(at, dir)
	if err != nil {
		return Place{dir, at}, nil
	}
	if filepath.Base(common) == ".git" { // a bare repository has no main work tree: use its own path
		common = filepath.Dir(common)
	}
	return Place{filepath.Join(common, rel), common}, nil
}

// WithoutLinks returns the path of dir without symbolic links. If dir does not exist, it resolves the
// parents that exist. It returns an error only for a fault of the machine.
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
// work tree that is linked to the work tree of top means the same path there. For example, the file a of a linked
// work tree is a, regardless of the location of that work tree. ok is false if the path is neither in top nor in
// such a work tree. Relative reads the same files as PlaceOf, and returns an error only for a fault of the machine.
func Relative(top, path string) (rel string, ok bool, err error) {
	rel, ok, _, err = relative(top, path)
	return rel, ok, err
}

// relative is Relative that also reports whether the nearest work tree at or above path is a linked one.
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

// inLinkedWorkTree reports whether the nearest work tree at or above path is a linked one.
func inLinkedWorkTree(path string) (bool, error) {
	top, err := WorkTree(path)
	if err != nil {
		return false, err
	}
	git, common, err := GitFolders(top)
	return git != common, err
}

// placeOfEntry is PlaceOf(path).Path, but keeps the name of a path that is a symbolic link itself, because
// Git tracks the link and not its target.
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
