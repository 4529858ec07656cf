//go:build unix && !linux

package maildir

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// syncAll makes the files at paths, and every folder above them, durable one by one: no syncfs here.
func (t *Tree) syncAll(paths []string) error {
	dirs := map[string]bool{}
	for _, p := range paths {
		if err := t.syncOne(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for d := path.Dir(p); !dirs[d]; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	for d := range dirs {
		if err := t.syncOne(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (t *Tree) syncOne(p string) error {
	f, err := t.root.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// makeDir makes a folder and its parents, and refuses one behind a symbolic link.
func (t *Tree) makeDir(dir string) error {
	err := t.linkless(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := t.root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		return t.linkless(dir)
	}
	return err
}

// closeFolders has nothing to forget here.
func (t *Tree) closeFolders() {}

// writeStaged makes a new file below tmp with that content.
func (t *Tree) writeStaged(name string, data []byte) error {
	if err := t.makeDir(tmpDir); err != nil {
		return err
	}
	f, err := t.root.OpenFile(tmpDir+"/"+name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// renameNew renames from to to; fs.ErrExist when to is there already.
func (t *Tree) renameNew(from, to string) error {
	if err := t.root.Link(from, to); err != nil {
		return err
	}
	return t.root.Remove(from)
}

// exchange swaps the two files, to in one step; fs.ErrNotExist when to is missing.
func (t *Tree) exchange(from, to string) error {
	old := from + ".old"
	if err := t.root.Link(to, old); err != nil {
		return err
	}
	if err := t.root.Rename(from, to); err != nil {
		t.root.Remove(old)
		return err
	}
	return t.root.Rename(old, from)
}
