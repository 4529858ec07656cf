package repo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mailtree/maildir/tree"
)

// maxFolders is the most folders of a path that is looked at. Each lookup follows all links of the path
// again.
const maxFolders = 100

// Place says where a path lies.
type Place struct {
	Path string // in the main work tree and without symbolic links; the given path if it lies in no work tree
	Top  string // top of the main work tree; "" if there is none
}

// PlaceOf maps a path inside a linked Git work tree to the same path in the main work tree, so that agents
// in two work trees share one mailbox. It maps a path that leads through symbolic links into a work tree to
// the path without the links, because that is the path that Git and most programs report. It reads only
// small regular .git files above the path. It returns an error only for a fault of the machine. See
// docs/settings.md, "Projects".
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
