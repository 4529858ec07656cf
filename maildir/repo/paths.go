package repo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mailtree/maildir/tree"
)

// maxFolders is how many folders a path may lead through to be looked at: each look goes through all links of it anew.
const maxFolders = 100

// MainPath maps a path inside a linked Git work tree to the same path in the main one, so that agents in two
// work trees share one mailbox, and one that leads through symbolic links into a work tree to the path without them: that
// is what Git and most programs say of where they are. It looks only at small regular .git files above the path. Errors: the
// machine's faults.
// See docs/settings.md, "Projects".
func MainPath(dir string) (string, error) {
	if strings.Count(dir, "/") > maxFolders {
		return dir, nil
	}
	real, err := WithoutLinks(dir)
	if err != nil {
		return "", err
	}
	at, err := WorkTree(real)
	if err == nil && at != "" {
		dir = real
	} else if err == nil {
		at, err = WorkTree(dir)
	}
	if err != nil {
		return "", err
	}
	git, common, err := gitFolders(at)
	if err != nil || git == common { // no work tree, one of its own, or a submodule
		return dir, err
	}
	rel, err := filepath.Rel(at, dir)
	if err != nil {
		return dir, nil
	}
	if filepath.Base(common) == ".git" { // a bare repository has no main work tree: its own path stands for it
		common = filepath.Dir(common)
	}
	return filepath.Join(common, rel), nil
}

// WithoutLinks is the path of what is at dir that leads through no symbolic link; of its parents where there is nothing.
// Errors: the machine's faults.
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
