package maildir

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// syncAll makes everything written to the tree's file system so far durable: one syncfs, which also reports
// write-back errors. The paths are for systems without it.
func (t *Tree) syncAll(_ []string) error {
	for {
		if err := unix.Syncfs(t.sys.fd); err != unix.EINTR {
			return os.NewSyscallError("syncfs", err)
		}
	}
}

// folder returns a folder of the tree, opened once for the present group. Errors: fs.ErrNotExist, a *FormatError
// behind a link.
func (t *Tree) folder(dir string) (int, error) {
	if fd, ok := t.sys.folders[dir]; ok {
		return fd, nil
	}
	fd, err := t.open2(dir, unix.O_PATH|unix.O_DIRECTORY)
	if err == nil {
		t.sys.folders[dir] = fd
	}
	return fd, err
}

// closeFolders forgets the folders of a group: a person may move them before the next one.
func (t *Tree) closeFolders() {
	for _, fd := range t.sys.folders {
		unix.Close(fd)
	}
	clear(t.sys.folders)
}

// makeDir makes a folder and its parents, and refuses one behind a symbolic link.
func (t *Tree) makeDir(dir string) error {
	_, err := t.folder(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if dir == "." {
		return err
	}
	parent := path.Dir(dir)
	if err := t.makeDir(parent); err != nil {
		return err
	}
	fd, err := t.folder(parent)
	if err != nil {
		return err
	}
	if err := unix.Mkdirat(fd, path.Base(dir), 0o700); err != nil && err != unix.EEXIST {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: err}
	}
	_, err = t.folder(dir)
	return err
}

// writeStaged makes a new file below tmp with that content.
func (t *Tree) writeStaged(name string, data []byte) error {
	if err := t.makeDir(tmpDir); err != nil {
		return err
	}
	dir, err := t.folder(tmpDir)
	if err != nil {
		return err
	}
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &fs.PathError{Op: "create", Path: tmpDir + "/" + name, Err: err}
	}
	for len(data) > 0 && err == nil {
		var n int
		if n, err = unix.Write(fd, data); err == unix.EINTR {
			err = nil
		}
		data = data[max(n, 0):]
	}
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	return os.NewSyscallError("write", err)
}

// renameNew renames from to to; fs.ErrExist when to is there already.
func (t *Tree) renameNew(from, to string) error { return t.rename2(from, to, unix.RENAME_NOREPLACE) }

// exchange swaps the two files in one step; fs.ErrNotExist when to is missing.
func (t *Tree) exchange(from, to string) error { return t.rename2(from, to, unix.RENAME_EXCHANGE) }

func (t *Tree) rename2(from, to string, flags uint) error {
	a, err := t.folder(path.Dir(from))
	if err != nil {
		return err
	}
	b, err := t.folder(path.Dir(to))
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
