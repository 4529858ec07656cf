//go:build unix && !linux

package tree

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// Sync makes the files at paths, and every folder above them, durable one by one, because this system has
// no syncfs.
func (t *Tree) Sync(paths []string) error {
	if t.Fail != nil {
		if err := t.Fail(SyncCall); err != nil {
			return err
		}
	}
	if err := t.hold(); err != nil {
		return err
	}
	defer t.release()
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
	f, err := t.sys.root.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// folders is empty because this system keeps no folders open.
type folders struct{}

func (c *Changer) forgetFolders() {}

func (c *Changer) forgetFolder(string) {}

// trim does nothing because no folders are open.
func (c *Changer) trim() {}

// Stat returns the state of p.
func (c *Changer) Stat(p string) (FileStat, error) { return c.tree.Stat(p) }

// MakeDir creates a folder and its parents. It returns an error if the path contains a symbolic link.
func (c *Changer) MakeDir(dir string) error {
	if err := c.holdTree(); err != nil {
		return err
	}
	err := c.tree.linkless(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := c.tree.sys.root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		return c.tree.linkless(dir)
	}
	return err
}

// writeStaged creates a file with the given content below TmpDir, and returns the file's state.
func (c *Changer) writeStaged(name string, data []byte) (st FileStat, err error) {
	if err := c.MakeDir(TmpDir); err != nil {
		return st, err
	}
	f, err := c.tree.sys.root.OpenFile(TmpDir+"/"+name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return st, err
	}
	if _, err = f.Write(data); err == nil {
		var fi fs.FileInfo
		if fi, err = f.Stat(); err == nil {
			st = StatOfInfo(fi)
		}
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return st, err
}

// rename renames a file, replacing any file at to.
func (c *Changer) rename(from, to string) error { return c.tree.sys.root.Rename(from, to) }

// remove removes a file.
func (c *Changer) remove(p string) error { return c.tree.sys.root.Remove(p) }

// renameNew renames a file. It returns fs.ErrExist if there is already a file at to.
func (c *Changer) renameNew(from, to string) error {
	if err := c.tree.sys.root.Link(from, to); err != nil {
		return err
	}
	return c.tree.sys.root.Remove(from)
}

// exchange swaps two files. It replaces to atomically, but not from. It returns fs.ErrNotExist if to is missing.
func (c *Changer) exchange(from, to string) error {
	old := from + ".old"
	if err := c.tree.sys.root.Link(to, old); err != nil {
		return err
	}
	if err := c.tree.sys.root.Rename(from, to); err != nil {
		c.tree.sys.root.Remove(old)
		return err
	}
	return c.tree.sys.root.Rename(old, from)
}
