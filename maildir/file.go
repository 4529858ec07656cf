package maildir

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"
)

// This file is the only one that changes the tree. A change is staged below .mailtree/tmp, made durable, and
// put into place by one rename, so that a reader sees the old file or the new one (Spec: 5).

// tmpDir is the folder of the tree where files are staged: untracked, and on the same file system.
const tmpDir = ".mailtree/tmp"

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
	sum    string   // SHA-256 of data, hex; of a remove, of what is there
	was    string   // of a replace: SHA-256 of what was there when it was planned, and is in the history; "": nothing
	staged string   // name below tmp, once staged
	stat   FileStat // of the staged file
	done   bool     // in its place
	there  bool     // of a replace: not where there is nothing any more
	gone   bool     // a remove that found nothing, or a replace that found nothing to keep
}

// changer changes a tree for one group: it keeps the tree and the folders that the group works in open until close, so that a
// person may move them before the next one. The tree is open from before the first file is staged until the last one is
// synced: syncfs tells a descriptor what could not be written since that was opened. For one goroutine at a time; the zero
// value but for the tree.
type changer struct {
	tree *Tree
	held bool
	most int // folders open at once
	folders
}

// holdTree opens the tree, which stays open until close.
func (c *changer) holdTree() error {
	if c.held {
		return nil
	}
	err := c.tree.hold()
	c.held = err == nil
	return err
}

// close gives up the tree and the folders; the changer can be used again.
func (c *changer) close() {
	c.forgetFolders()
	if c.held {
		c.held = false
		c.tree.release()
	}
}

// mostFolders is how many folders one changer holds open at most: more makes nothing faster.
const mostFolders = 256

// changer returns a changer of the tree that holds at most that many folders open, 0 for mostFolders.
func (t *Tree) changer(folders int) *changer {
	return &changer{tree: t, most: cmp.Or(folders, mostFolders)}
}

// errChanged says that somebody wrote at the path between planning and rename. It wraps fs.ErrExist: plan again.
var errChanged = fmt.Errorf("somebody wrote there meanwhile: %w", fs.ErrExist)

// stage writes w's bytes below tmp and makes the folders that its path needs. Nothing is durable yet.
func (c *changer) stage(w *write, name string) (err error) {
	if err := c.holdTree(); err != nil {
		return err
	}
	c.trim()
	w.staged = name
	if w.action == remove {
		return nil
	}
	if err := c.makeDir(path.Dir(w.path)); err != nil {
		return err
	}
	w.stat, err = c.writeStaged(name, w.data)
	return err
}

// publish puts a staged write into its place. fs.ErrExist when create found something there.
func (c *changer) publish(w *write) error {
	err := c.holdTree()
	if err != nil {
		return err
	}
	c.trim()
	from, to := tmpDir+"/"+w.staged, w.path
	switch w.action {
	case create:
		err = c.renameNew(from, to)
	case replace:
		if err = c.exchange(from, to); errors.Is(err, fs.ErrNotExist) && !w.there {
			w.gone = true
			err = c.renameNew(from, to)
		}
	case remove:
		if err = c.tree.root.Rename(to, from); errors.Is(err, fs.ErrNotExist) {
			w.gone, err = true, nil
		}
	}
	w.done = err == nil
	if w.done && !w.gone && w.action != create && !c.tree.holds(from, w.before()) { // what was renamed away is in no history
		return errChanged
	}
	return err
}

// before is the SHA-256 of what lay at the path when w was planned.
func (w *write) before() string {
	if w.action == remove {
		return w.sum
	}
	return w.was
}

// undo takes back what stage and publish did, as far as it was done. What somebody wrote there since is left alone.
func (c *changer) undo(w *write) error {
	if err := c.holdTree(); err != nil {
		return err
	}
	from, to := tmpDir+"/"+w.staged, w.path
	if !w.done {
		if w.action == remove || w.staged == "" {
			return nil
		}
		return ignoreGone(c.tree.root.Remove(from))
	}
	w.done = false
	if w.action == remove {
		if w.gone {
			return nil
		}
		if err := c.renameNew(from, to); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
	own, err := c.tree.compare(to, w.sum)
	switch {
	case err != nil || !own:
		return err
	case w.action == replace && !w.gone:
		if err := c.exchange(from, to); err != nil {
			return err
		}
		return ignoreGone(c.tree.root.Remove(from))
	}
	return ignoreGone(c.tree.root.Remove(to))
}

// tidy removes what a finished write left below tmp: the file that was replaced or removed.
func (c *changer) tidy(w *write) {
	if w.action != create && !w.gone && c.holdTree() == nil {
		c.tree.root.Remove(tmpDir + "/" + w.staged)
	}
}

// touch sets the time of an untracked run-time file, making it where it is missing.
func (t *Tree) touch(p string, now time.Time) error {
	if err := t.hold(); err != nil {
		return err
	}
	defer t.release()
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

// writeRun puts a file of the untracked run-time state at p, whole or the old one for every reader; other processes may do
// the same. It is not durable. Nothing is made where no store was opened: there is no place to stage it then.
func (t *Tree) writeRun(p string, data []byte) error {
	if err := t.hold(); err != nil {
		return err
	}
	defer t.release()
	if st, err := t.Stat(tmpDir); err != nil || !st.Mode.IsDir() {
		return cmp.Or(err, fs.ErrNotExist)
	}
	staged := fmt.Sprintf("%s/%s-%d-%d", tmpDir, path.Base(p), os.Getpid(), time.Now().UnixNano())
	f, err := t.root.OpenFile(staged, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = cmp.Or(err, f.Close()); err == nil {
		err = t.root.MkdirAll(path.Dir(p), 0o700)
	}
	if err == nil {
		err = t.root.Rename(staged, p)
	}
	if err != nil {
		t.root.Remove(staged)
	}
	return err
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func (t *Tree) syncFolder(p string) error {
	if err := t.hold(); err != nil {
		return err
	}
	defer t.release()
	d, err := t.root.Open(p)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func tooLarge(size, limit int64) *FormatError {
	return &FormatError{0, fmt.Sprintf("%d bytes, over the limit of %d", size, limit)}
}

// exists reports whether anything lies at p; false also where its folder may not be searched. The error is a fault of the
// machine.
func (t *Tree) exists(p string) (bool, error) {
	_, err := t.Stat(p)
	if FaultOf(err) == FaultMachine {
		return false, err
	}
	return err == nil, nil
}

// holds reports whether the file at p has that SHA-256, as far as it can be read.
func (t *Tree) holds(p, sum string) bool {
	is, err := t.compare(p, sum)
	return is && err == nil
}

// compare is holds where it matters that this cannot be told: the disk failed, or too many files are open. What is gone, has
// become something else or may not be read holds nothing.
func (t *Tree) compare(p, sum string) (bool, error) {
	f, st, err := t.open(p)
	if err == nil {
		defer f.Close()
		if !st.Mode.IsRegular() {
			return false, nil
		}
		is := sha256.New()
		if _, err = io.Copy(is, f); err == nil {
			return hex.EncodeToString(is.Sum(nil)) == sum, nil
		}
	}
	return false, machineFault(err)
}

// emptyTmp removes everything below tmp.
func (t *Tree) emptyTmp() error {
	entries, err := t.list(tmpDir)
	for _, e := range entries {
		err = errors.Join(err, t.removeStaged(e.Name()))
	}
	return err
}

// removeStaged removes what lies below tmp by that name, a folder with all that is in it.
func (t *Tree) removeStaged(name string) error {
	if err := t.hold(); err != nil {
		return err
	}
	defer t.release()
	return ignoreGone(t.root.RemoveAll(tmpDir + "/" + name))
}
