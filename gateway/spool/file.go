package spool

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// prefix is the beginning of the names of temporary files on systems where a new file must briefly have a name.
const prefix = ".incoming-"

// temporary creates a nameless file in the file system of dir. The system removes the file when it is closed, even if
// the process is killed. If the disk fails, temporary returns an error.
func temporary(dir string) (*os.File, error) {
	f, err := withoutName(dir)
	if errors.Is(err, errors.ErrUnsupported) {
		return unlinked(dir)
	}
	return f, err
}

// unlinked creates a file and removes its name immediately.
func unlinked(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, prefix)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// removeLeft removes files left behind by a server that was killed between the two steps of unlinked.
func removeLeft(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		if gone := os.Remove(filepath.Join(dir, e.Name())); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// diskFree returns the number of free bytes in the file system of dir that an unprivileged user can use.
func diskFree(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
