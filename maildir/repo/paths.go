package repo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mailtree/maildir/tree"
)

// maxFolders is how many folders a path may lead through to be looked at: each look goes through
// all links of it anew.
const maxFolders = 100

// Place says where a path lies.
type Place struct {
	Path string // in the main work tree, through no symbolic link; where it lies in no work tree, as it was given
	Top  string // of the main work tree; "" where there is none
}

// PlaceOf maps a path inside a linked Git work tree to the same path in the main one, so that
// agents in two work trees share one mailbox, and one that leads through symbolic links into a work
// tree to the path without them: that is what Git and most programs say of where they are. It looks
// only at small regular .git files above the path. Errors: the machine's faults. See
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
	if err != nil || git == common { // no work tree, one of its own, or a submodule
		return Place{dir, at}, err
	}
	rel, err := filepath.Rel(at, dir)
	if err != nil {
		return Place{dir, at}, nil
	}
	if filepath.Base(common) == ".git" { // a bare repository has no main work tree: its own path stands for it
		common = filepath.Dir(common)
	}
	return Place{filepath.Join(common, rel), common}, nil
}

// WithoutLinks is the path of what is at dir that leads through no symbolic link; of its parents
// where there is nothing. Errors: the machine's faults.
func WithoutLinks(dir string) (string, error) {
	at := dir
	_, err := os.Stat(at) // the system gives up sooner than filepath does
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
