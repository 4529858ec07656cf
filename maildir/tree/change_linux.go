package tree

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// Sync makes everything durable that has been written to the tree's file system. It calls syncfs once, which also
// reports write-back errors. It ignores the paths, which only systems without syncfs need.
func (t *Tree) Sync(_ []string) error {
	if t.Fail != nil {
		if err := t.Fail(SyncCall); err != nil {
			return err
		}
	}
	if err := t.hold(); err != nil {
		return err
	}
	defer t.release()
	for {
		if err := unix.Syncfs(t.sys.fd); err != unix.EINTR {
			return os.NewSyscallError("syncfs", err)
		}
	}
}

// folders contains the descriptors of the open folders, by path.
type folders map[string]int

// folder returns the descriptor of a folder in the tree, which it opens on first use. It returns fs.ErrNotExist if
// the folder does not exist, and a *FormatError if the path contains a symbolic link.
func (c *Changer) folder(dir string) (int, error) {
	if fd, ok := c.folders[dir]; ok {
		return fd, nil
	}
	if err := c.holdTree(); err != nil {
		return -1, err
	}
	fd, err := c.tree.open2(dir, unix.O_PATH|unix.O_DIRECTORY)
	if err == nil {
		if c.folders == nil {
			c.folders = folders{}
		}
		c.folders[dir] = fd
	}
	return fd, err
}

func (c *Changer) forgetFolders() {
	for _, fd := range c.folders {
		unix.Close(fd)
	}
	clear(c.folders)
}

// forgetFolder closes a folder, so that the next use opens the folder that is at the path at that time.
func (c *Changer) forgetFolder(dir string) {
	if fd, ok := c.folders[dir]; ok {
		unix.Close(fd)
		delete(c.folders, dir)
	}
}

// trim closes all folders if too many are open. The caller must not be using any of them.
func (c *Changer) trim() {
	if len(c.folders) >= c.most {
		c.forgetFolders()
	}
}

// Stat returns the state of p. It opens p's parent folder and keeps it open.
func (c *Changer) Stat(p string) (FileStat, error) {
	if c.tree.Fail != nil {
		if err := c.tree.Fail(p); err != nil {
			return FileStat{}, &fs.PathError{Op: "stat", Path: p, Err: err}
		}
	}
	c.trim()
	dir, err := c.folder(path.Dir(p))
	if err != nil {
		return FileStat{}, err
	}
	var s unix.Stat_t
	if err := unix.Fstatat(dir, path.Base(p), &s, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return FileStat{}, &fs.PathError{Op: "stat", Path: p, Err: err}
	}
	return statFrom(&s), nil
}

// MakeDir creates a folder and its parents. It returns an error if the path contains a symbolic link.
func (c *Changer) MakeDir(dir string) error {
	_, err := c.folder(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if dir == "." {
		return err
	}
	parent := path.Dir(dir)
	if err := c.MakeDir(parent); err != nil {
		return err
	}
	fd, err := c.folder(parent)
	if err != nil {
		return err
	}
	if err := unix.Mkdirat(fd, path.Base(dir), 0o700); err != nil && err != unix.EEXIST {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: err}
	}
	_, err = c.folder(dir)
	return err
}

// writeStaged creates a file with the given content below TmpDir, and returns the file's state.
func (c *Changer) writeStaged(name string, data []byte) (FileStat, error) {
	if err := c.MakeDir(TmpDir); err != nil {
		return FileStat{}, err
	}
	dir, err := c.folder(TmpDir)
	if err != nil {
		return FileStat{}, err
	}
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return FileStat{}, &fs.PathError{Op: "create", Path: TmpDir + "/" + name, Err: err}
	}
	for len(data) > 0 && err == nil {
		var n int
		if n, err = unix.Write(fd, data); err == unix.EINTR {
			err = nil
		}
		data = data[max(n, 0):]
	}
	if err != nil {
		unix.Close(fd)
		return FileStat{}, &fs.PathError{Op: "write", Path: TmpDir + "/" + name, Err: err}
	}
	st, err := statOf(fd, TmpDir+"/"+name)
	if cerr := unix.Close(fd); err == nil && cerr != nil {
		err = &fs.PathError{Op: "close", Path: TmpDir + "/" + name, Err: cerr}
	}
	return st, err
}

// renameNew renames a file. It returns fs.ErrExist if there is already a file at to.
func (c *Changer) renameNew(from, to string) error { return c.rename2(from, to, unix.RENAME_NOREPLACE) }

// exchange swaps two files atomically. It returns fs.ErrNotExist if to is missing.
func (c *Changer) exchange(from, to string) error { return c.rename2(from, to, unix.RENAME_EXCHANGE) }

// rename renames a file, replacing any file at to.
func (c *Changer) rename(from, to string) error { return c.rename2(from, to, 0) }

// remove removes a file.
func (c *Changer) remove(p string) error {
	dir, err := c.folder(path.Dir(p))
	if err != nil {
		return err
	}
	if err := unix.Unlinkat(dir, path.Base(p), 0); err != nil {
		return &fs.PathError{Op: "remove", Path: p, Err: err}
	}
	return nil
}

func (c *Changer) rename2(from, to string, flags uint) error {
	a, err := c.folder(path.Dir(from))
	if err != nil {
		return err
	}
	b, err := c.folder(path.Dir(to))
	if err != nil {
		return err
	}
	for {
		err := unix.Renameat2(a, path.Base(from), b, path.Base(to), flags)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return &fs.PathError{Op: "rename to", Path: to, Err: err}
		}
		return nil
	}
}
