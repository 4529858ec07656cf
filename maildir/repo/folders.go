package repo

import (
	"path/filepath"
	"strings"
)

// Folder is a folder on this machine that contains the same code base as another folder, although Git does not link
// the two. An example is a second clone.
type Folder struct {
	Path string // absolute path without symbolic links
	Same string // the other folder, whose path names the project
}

// Folders lists every known Folder on this machine. It is usually nil. In that case, only Git's links determine which
// folders contain the same code base. See package folders.
type Folders []Folder

// PlaceOf is like the function PlaceOf, but maps a path in one of the folders to the same path in the folder that
// names the project.
func (f Folders) PlaceOf(dir string) (Place, error) {
	place, err := PlaceOf(dir)
	if err != nil || len(f) == 0 {
		return place, err
	}
	for _, path := range []string{place.Path, dir} { // dir, too, because f may list a linked worktree
		in, ok := f.around(path)
		if !ok {
			continue
		}
		if other, err := IsOther(path, in.Path); err != nil || other {
			return place, err
		}
		return in.place(path)
	}
	return place, nil
}

// IsOther reports whether path is in a working tree whose top is below folder. Such a path does not belong to folder's
// code base. For example, folder may contain several code bases. IsOther returns an error only for a machine fault.
func IsOther(path, folder string) (bool, error) {
	top, err := WorkTree(path)
	return strings.HasPrefix(top, strings.TrimSuffix(folder, "/")+"/"), err
}

// place returns the location of a path in the folder.
func (f Folder) place(path string) (Place, error) {
	to := filepath.Join(f.Same, strings.TrimPrefix(path, f.Path))
	top, err := WorkTree(to)
	if top == "" {
		top = f.Same
	}
	return Place{Path: to, Top: top}, err
}

// around returns the innermost of the folders that contain path.
func (f Folders) around(path string) (in Folder, ok bool) {
	for _, folder := range f {
		if _, inside := relativeTo(folder.Path, path); inside && len(folder.Path) > len(in.Path) {
			in, ok = folder, true
		}
	}
	return in, ok
}

// nested reports whether path is in another folder of top's code base, and that folder is below top.
func (f Folders) nested(top, path string) bool {
	in, ok := f.around(path)
	if !ok || in.Same != top || in.Path == top {
		return false
	}
	_, below := relativeTo(top, in.Path)
	return below
}

// Relative is like relative, but without the result elsewhere.
func (f Folders) Relative(top, path string) (rel string, ok bool, err error) {
	rel, ok, _, err = f.relative(top, path)
	return rel, ok, err
}

// Around returns the folder of main's code base that contains dir, if that folder is not main itself. This folder is in
// f, or is the top of a worktree that Git has linked to main or to a folder in f. Around returns "" if there is no such
// folder. It returns an error only for a machine fault.
func (f Folders) Around(dir, main string) (string, error) {
	if !filepath.IsAbs(dir) || main == "" {
		return "", nil
	}
	linked, err := linkedWorkTree(dir, main)
	if err != nil || linked != "" || len(f) == 0 {
		return linked, err
	}
	real, err := WithoutLinks(filepath.Clean(dir))
	if err != nil {
		return "", err
	}
	if in, ok := f.around(real); ok && in.Same == main {
		return in.Path, nil
	}
	for _, folder := range f {
		if folder.Same != main {
			continue
		}
		if linked, err := linkedWorkTree(dir, folder.Path); err != nil || linked != "" {
			return linked, err
		}
	}
	return "", nil
}
