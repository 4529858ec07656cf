package repo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mailtree/maildir/tree"
)

// maxFolders is the maximum number of folders in a path. Longer paths are not resolved, because each lookup follows
// all links in the path again.
const maxFolders = 100

// Place is a path's location in relation to working trees.
type Place struct {
	Path string // the path in the main working tree, without symbolic links; outside working trees, the given path
	Top  string // top of the main working tree, or container of a bare layout (see containerOf); empty if there is none

	// Bare is the same path below the bare repository of a bare layout, and BareTop is that repository. Earlier
	// versions named projects by Bare. Both fields are empty outside a bare layout.
	Bare, BareTop string
}

// PlaceOf maps a path inside a linked Git worktree to the same path in the main working tree, so that agents in both
// worktrees use the same project. If a path leads into a working tree through symbolic links, PlaceOf maps it to the
// path without the links, because Git and most programs report that path. If the main repository is bare, PlaceOf uses
// the container of the bare layout instead of the main working tree. PlaceOf reads only small regular .git files above
// the path. It returns an error only for a machine fault. See docs/reference/settings.md, "Projects".
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
	if at == "" {
		return placeInLayout(dir, real)
	}
	git, common, err := GitFolders(at)
	if err != nil || common == "" {
		return Place{Path: dir, Top: at}, err
	}
	rel, err := filepath.Rel(at, dir)
	if err != nil {
		return Place{Path: dir, Top: at}, nil
	}
	container, err := containerOf(common)
	switch {
	case err != nil:
		return Place{}, err
	case git == common && container != at: // an unlinked working tree, or a submodule
		return Place{Path: dir, Top: at}, nil
	case container != "":
		return Place{
			Path:    filepath.Join(container, rel),
			Top:     container,
			Bare:    filepath.Join(common, rel),
			BareTop: common,
		}, nil
	}
	if filepath.Base(common) == ".git" { // otherwise, common is a bare repository without a container
		common = filepath.Dir(common)
	}
	return Place{Path: filepath.Join(common, rel), Top: common}, nil
}

// placeInLayout returns the location of a path that is not in a working tree. The path may be in a bare layout whose
// folder has no .git file. real is dir without symbolic links.
func placeInLayout(dir, real string) (Place, error) {
	for at := real; at != filepath.Dir(at); at = filepath.Dir(at) {
		bare := filepath.Join(at, ".bare")
		_, err := os.Lstat(filepath.Join(bare, "HEAD"))
		if err := tree.MachineFault(err); err != nil {
			return Place{}, err
		}
		rel, inside := relativeTo(at, real)
		if err == nil && inside && real != bare && !strings.HasPrefix(real, bare+"/") {
			return Place{Path: real, Top: at, Bare: filepath.Join(bare, rel), BareTop: bare}, nil
		}
	}
	return Place{Path: dir}, nil
}

// containerOf returns the container of a bare repository: the folder that contains the repository and its worktrees. A
// repository has a container if it is called .bare, or if the .git file in its parent folder points to it. Otherwise
// containerOf returns "". It returns an error only for a machine fault.
func containerOf(common string) (string, error) {
	dir := filepath.Dir(common)
	if filepath.Base(common) == ".git" {
		return "", nil
	}
	git, _, err := GitFolders(dir)
	if err != nil {
		return "", err
	}
	if filepath.Clean(git) == common || filepath.Base(common) == ".bare" {
		return dir, nil
	}
	return "", nil
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

// relative returns an absolute path relative to the folder top of a code base, and "." for top itself. A path in a
// worktree that is linked to top's working tree, or in another folder of the code base, is treated as the same path in
// top. For example, a.go at the top of a linked worktree becomes "a.go", wherever that worktree is. ok is false if the
// path is not in any of these folders. elsewhere reports whether the path is in a folder other than top. relative reads
// the same files as PlaceOf, and returns an error only for a machine fault.
func (f Folders) relative(top, path string) (rel string, ok, elsewhere bool, err error) {
	path = filepath.Clean(path)
	rel, ok = relativeTo(top, path)
	linked, err := inLinkedWorkTree(path)
	if err != nil || ok && !linked && !f.nested(top, path) {
		return rel, ok, linked, err
	}
	at, err := f.placeOfEntry(path)
	if err != nil {
		return "", false, linked, err
	}
	of, err := PlaceOf(top)
	if err != nil {
		return "", false, linked, err
	}
	for _, pair := range [][2]string{{of.Path, at.Path}, {top, at.Path}, {top, at.Bare}} {
		if in, is := relativeTo(pair[0], pair[1]); is {
			return in, true, true, nil
		}
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

// inLinkedWorkTree reports whether the nearest working tree at or above path is a linked worktree.
func inLinkedWorkTree(path string) (bool, error) {
	top, err := WorkTree(path)
	if err != nil {
		return false, err
	}
	git, common, err := GitFolders(top)
	return git != common, err
}

// placeOfEntry is like PlaceOf, but does not resolve a path that is itself a symbolic link, because Git tracks the link
// and not its target.
func (f Folders) placeOfEntry(path string) (Place, error) {
	fi, err := os.Lstat(path)
	if err := tree.MachineFault(err); err != nil {
		return Place{}, err
	}
	if err == nil && fi.Mode()&fs.ModeSymlink != 0 {
		in, err := f.PlaceOf(filepath.Dir(path))
		in.Path = filepath.Join(in.Path, filepath.Base(path))
		if in.Bare != "" {
			in.Bare = filepath.Join(in.Bare, filepath.Base(path))
		}
		return in, err
	}
	return f.PlaceOf(path)
}
