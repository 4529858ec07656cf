package maildir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"
)

// This file is the only one that changes the tree. A change is staged below .mailtree/tmp, made durable, and
// put into place by one rename, so that a reader sees the old file or the new one (Spec: 5).

// action is what a write does to its path.
type action uint8

const (
	create  action = iota // the path must not exist: exclusive creation decides who was first
	replace               // the path may exist: it is exchanged whole
	remove                // the path is taken away
)

// write is one file of an operation.
type write struct {
	path   string
	action action
	data   []byte
	sum    string // SHA-256 of data, hex
	staged string // name below tmp, once staged
	done   bool   // in its place
	gone   bool   // a remove that found nothing, or a replace that found nothing to keep
}

// tmpDir is the staging folder, relative to the tree.
const tmpDir = runDir + "/tmp"

// stage writes w's bytes below tmp and makes the folders that its path needs. Nothing is durable yet.
func (t *Tree) stage(w *write, name string) error {
	w.staged = name
	if w.action == remove {
		return nil
	}
	if err := t.makeDir(path.Dir(w.path)); err != nil {
		return err
	}
	return t.writeStaged(name, w.data)
}

// publish puts a staged write into its place. fs.ErrExist when create found something there.
func (t *Tree) publish(w *write) error {
	from, to := tmpDir+"/"+w.staged, w.path
	var err error
	switch w.action {
	case create:
		err = t.renameNew(from, to)
	case replace:
		if err = t.exchange(from, to); errors.Is(err, fs.ErrNotExist) {
			w.gone = true
			err = t.renameNew(from, to)
		}
	case remove:
		if err = t.root.Rename(to, from); errors.Is(err, fs.ErrNotExist) {
			w.gone, err = true, nil
		}
	}
	w.done = err == nil
	return err
}

// undo takes back what stage and publish did, as far as it was done.
func (t *Tree) undo(w *write) error {
	from, to := tmpDir+"/"+w.staged, w.path
	if !w.done {
		if w.action == remove || w.staged == "" {
			return nil
		}
		return ignoreGone(t.root.Remove(from))
	}
	w.done = false
	switch {
	case w.action == remove && !w.gone:
		return t.root.Rename(from, to)
	case w.action == replace && !w.gone:
		if err := t.exchange(from, to); err != nil {
			return err
		}
		return ignoreGone(t.root.Remove(from))
	case w.action == remove:
		return nil
	}
	return ignoreGone(t.root.Remove(to))
}

// tidy removes what a finished write left below tmp: the file that was replaced or removed.
func (t *Tree) tidy(w *write) {
	if w.action != create && !w.gone {
		t.root.Remove(tmpDir + "/" + w.staged)
	}
}

// touch sets the time of an untracked run-time file, making it where it is missing.
func (t *Tree) touch(p string, now time.Time) error {
	if st, err := t.Stat(p); err == nil && !st.Mode.IsRegular() {
		return notRegular(st.Mode)
	}
	if err := t.root.MkdirAll(path.Dir(p), 0o700); err != nil {
		return err
	}
	f, err := t.root.OpenFile(p, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	f.Close()
	return t.root.Chtimes(p, now, now)
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeFile puts a file outside any tree (the store's own key, token) into place durably: 0600, whole or absent.
func writeFile(name string, data []byte) error {
	tmp, err := os.CreateTemp(path.Dir(name), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err = tmp.Write(data); err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), name); err != nil {
		return err
	}
	return syncDir(path.Dir(name))
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// diskError words a failed write for the one who asked: what happened and what to do, no path.
func diskError(err error) error {
	var said *Error
	if errors.As(err, &said) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	why := "the store could not be written"
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		why = "the disk is full"
	case errors.Is(err, syscall.EROFS):
		why = "the disk is read-only"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		why = "too many files are open"
	case errors.Is(err, syscall.EIO):
		why = "the disk reported an I/O error"
	case errors.Is(err, fs.ErrPermission):
		why = "permission was denied in the store"
	}
	return &Error{Kind: ErrUnavailable, Text: why + "; nothing was changed. See `mailtree doctor` and the server's log, then try again.", Err: err}
}

func stageName(group uint64, n int) string {
	return strconv.FormatUint(group, 36) + "-" + strconv.Itoa(n)
}

func tooLarge(size, limit int64) *FormatError {
	return &FormatError{0, fmt.Sprintf("%d bytes, over the limit of %d", size, limit)}
}
