//go:build unix && !linux

package tree

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// system contains the tree's open folder.
type system struct{ root *os.Root }

// openSystem opens the folder. It returns fs.ErrNotExist if the folder does not exist, and ENOTDIR if the
// folder is a symbolic link and noLink is set.
func (t *Tree) openSystem() (err error) {
	if t.noLink {
		fi, err := os.Lstat(t.dir)
		if err == nil && !fi.IsDir() {
			err = &fs.PathError{Op: "open", Path: t.dir, Err: syscall.ENOTDIR}
		}
		if err != nil {
			return err
		}
	}
	t.sys.root, err = os.OpenRoot(t.dir)
	return err
}

func (t *Tree) checkSystem() error        { return nil }
func (t *Tree) closeSystem()              { t.sys.root.Close() }
func (t *Tree) rooted() (*os.Root, error) { return t.sys.root, nil }

// Stat returns the state of p without following links. It returns any error from os.Lstat, and a *FormatError if p's
// folder is reached through a link.
func (t *Tree) Stat(p string) (FileStat, error) {
	if err := t.hold(); err != nil {
		return FileStat{}, err
	}
	defer t.release()
	if err := t.linkless(path.Dir(p)); err != nil {
		return FileStat{}, err
	}
	fi, err := t.sys.root.Lstat(p)
	if err != nil {
		return FileStat{}, err
	}
	return StatOfInfo(fi), nil
}

// Open opens p for reading. It does not follow links and does not block on a FIFO. The caller must close the file,
// and must check the FileStat to see whether the file is regular. Open returns a *FormatError if p cannot be opened
// because it is not a regular file.
func (t *Tree) Open(p string) (io.ReadCloser, FileStat, error) {
	if err := t.hold(); err != nil {
		return nil, FileStat{}, err
	}
	defer t.release()
	if err := t.linkless(path.Dir(p)); err != nil {
		return nil, FileStat{}, err
	}
	f, err := t.sys.root.OpenFile(p, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		if st, serr := t.Stat(p); serr == nil && !st.Mode.IsRegular() {
			return nil, st, NotRegular(st.Mode)
		}
		return nil, FileStat{}, err
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, FileStat{}, err
	}
	return f, StatOfInfo(fi), nil
}

// OpenFile opens the regular file at p with the same flags as os.OpenFile. With O_CREATE, it creates the file with
// mode 0600. No element of p may be a symbolic link. The caller must close the file. OpenFile returns any error from
// os.OpenFile, and a *FormatError if p is not a regular file.
func (t *Tree) OpenFile(p string, flags int) (*os.File, FileStat, error) {
	if err := t.hold(); err != nil {
		return nil, FileStat{}, err
	}
	defer t.release()
	before, err := t.Stat(p) // Stat fails if the path to p's folder contains a link
	switch {
	case err == nil && !before.Mode.IsRegular():
		return nil, before, NotRegular(before.Mode)
	case err != nil && (flags&os.O_CREATE == 0 || !errors.Is(err, fs.ErrNotExist)):
		return nil, before, err
	}
	f, err := t.sys.root.OpenFile(p, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, FileStat{}, err
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, FileStat{}, err
	}
	st := StatOfInfo(fi)
	if !st.Mode.IsRegular() || before.Inode != 0 && st.Inode != before.Inode {
		f.Close()
		return nil, st, &FormatError{0, "it has just been replaced"}
	}
	return f, st, nil
}

// BeingWritten always returns false, because this system cannot tell whether a process has a file open for writing.
func (t *Tree) BeingWritten(string) bool { return false }

// linkless returns an error if the folder's path contains a symbolic link.
func (t *Tree) linkless(dir string) error {
	if dir == "." {
		return nil
	}
	for i, c := range dir + "/" {
		if c != '/' {
			continue
		}
		fi, err := t.sys.root.Lstat(dir[:i])
		if err != nil {
			return err
		}
		if fi.Mode()&fs.ModeSymlink != 0 {
			return behindLink()
		}
	}
	return nil
}

// openFolder opens a folder for reading. The caller must close it.
func (t *Tree) openFolder(dir string) (*os.File, error) {
	if err := t.hold(); err != nil {
		return nil, err
	}
	defer t.release()
	if err := t.linkless(dir); err != nil {
		return nil, err
	}
	return t.sys.root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
}

// statIn returns the state of an entry in a folder.
func statIn(_ *os.File, d fs.DirEntry) (FileStat, error) {
	fi, err := d.Info()
	if err != nil {
		return FileStat{}, err
	}
	return StatOfInfo(fi), nil
}
