package repo

import (
	"cmp"
	"os"
	"path/filepath"

	"mailtree/maildir/tree"
)

// View looks up literal paths in a code base for one request. It looks in the code base's folder, and in the other
// folders of the code base that the request concerns: linked worktrees and second clones. Only one goroutine may use
// a View, and only until Visit returns.
type View struct {
	top     string
	folders Folders
	open    map[string]*os.Root // by folder; nil if the folder does not exist or is not in a working tree
	fault   error
}

// maxOpen is the maximum number of folders that a View reads.
const maxOpen = 8

// Visit calls visit with a view of the code base in the folder top, which is "" if there is none. dir is the absolute
// path of the folder in which the caller works. If dir is in another folder of the code base (Folders.Around), the view
// includes that folder. Visit returns visit's error, or a machine fault that the view ran into. After such a fault, the
// view's results are invalid.
func (f Folders) Visit(top, dir string, visit func(v *View) error) error {
	v := &View{top: top, folders: f, open: map[string]*os.Root{}}
	defer v.close()
	v.include(top)
	if filepath.IsAbs(dir) {
		v.Relative(dir)
	}
	if v.fault != nil {
		return v.fault
	}
	err := visit(v)
	return cmp.Or(v.fault, err)
}

// Exists reports whether a file or folder exists at a path relative to the code base's folder.
func (v *View) Exists(path string) bool {
	if v.fault != nil || !filepath.IsLocal(path) {
		return false
	}
	for _, root := range v.open {
		if root == nil {
			continue
		}
		_, err := root.Lstat(filepath.FromSlash(path))
		if err == nil {
			return true
		}
		if v.fault = lookFault(err); v.fault != nil {
			return false
		}
	}
	return false
}

// Relative is like Folders.Relative, but for the view's folder. If the path is in another folder of the code base, the
// view includes that folder afterwards.
func (v *View) Relative(path string) (rel string, ok bool) {
	if v.fault != nil || v.top == "" {
		return "", false
	}
	rel, ok, elsewhere, err := v.folders.relative(v.top, path)
	if err == nil && ok && elsewhere && len(v.open) < maxOpen {
		var other string
		if other, err = v.folders.Around(path, v.top); other != "" {
			v.include(other)
		}
	}
	v.fault = err
	return rel, ok && err == nil
}

// include opens a folder for Exists.
func (v *View) include(folder string) {
	if _, known := v.open[folder]; known || v.fault != nil {
		return
	}
	v.open[folder], v.fault = openInWorkTree(folder)
}

func (v *View) close() {
	for _, root := range v.open {
		if root != nil {
			root.Close()
		}
	}
}

// openInWorkTree opens dir. It returns nil if dir does not exist, or is not in a working tree or the container of a
// bare layout. It returns an error only for a machine fault.
func openInWorkTree(dir string) (*os.Root, error) {
	if dir == "" {
		return nil, nil
	}
	place, err := PlaceOf(dir)
	if err != nil || place.Top == "" {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, tree.MachineFault(err)
	}
	return root, nil
}
