package tree

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

// This file and its twins for each system are the only ones that change the tree. A change is
// staged below TmpDir, made durable, and put into place by one rename, so that a reader sees the
// old file or the new one. See docs/durability.md, "How one operation is written".

// TmpDir is the folder of the tree where files are staged: untracked, and on the same file system.
const TmpDir = ".mailtree/tmp"

// Action is what a write does to its path.
type Action uint8

const (
	Create  Action = iota // the path must not exist: exclusive creation decides who was first
	Replace               // the path may exist: it is exchanged whole
	Remove                // the path is taken away
)

// Write is one file of an operation.
type Write struct {
	Path   string
	Action Action
	Data   []byte
	Sum    string   // SHA-256 of data, hex; of a remove, of what is there
	Was    string   // of a replace: SHA-256 of what was there when it was planned, and is in the history; "": nothing
	Staged string   // name below tmp, once staged
	Stat   FileStat // of the staged file
	Done   bool     // in its place
	There  bool     // of a replace or remove: not where there is nothing any more
	Gone   bool     // a remove that found nothing, or a replace that found nothing to keep
}

// Changer changes a tree for one group: it keeps the tree and the folders that the group works in
// open until close, so that a person may move them before the next one. The tree is open from
// before the first file is staged until the last one is synced: syncfs tells a descriptor what
// could not be written since that was opened. For one goroutine at a time; the zero value but for
// the tree.
type Changer struct {
	tree *Tree
	held bool
	most int // folders open at once
	folders
}

// holdTree opens the tree, which stays open until close.
func (c *Changer) holdTree() error {
	if c.held {
		return nil
	}
	err := c.tree.hold()
	c.held = err == nil
	return err
}

// Close gives up the tree and the folders; the changer can be used again.
func (c *Changer) Close() {
	c.forgetFolders()
	if c.held {
		c.held = false
		c.tree.release()
	}
}

// MostFolders is how many folders one changer holds open at most: more makes nothing faster.
const MostFolders = 256

// Changer returns a changer of the tree that holds at most that many folders open, 0 for
// MostFolders.
func (t *Tree) Changer(folders int) *Changer {
	return &Changer{tree: t, most: cmp.Or(folders, MostFolders)}
}

// ErrChanged says that somebody wrote at the path between planning and rename. It wraps
// fs.ErrExist: plan again.
var ErrChanged = fmt.Errorf("somebody wrote there meanwhile: %w", fs.ErrExist)

// Stage writes w's bytes below tmp under that name and makes the folders that its path needs; a
// removal only notes the name. Nothing is durable yet.
func (c *Changer) Stage(w *Write, name string) (err error) {
	if err := c.holdTree(); err != nil {
		return err
	}
	c.trim()
	w.Staged = name
	if w.Action == Remove {
		return nil
	}
	if err := c.MakeDir(path.Dir(w.Path)); err != nil {
		return err
	}
	w.Stat, err = c.writeStaged(name, w.Data)
	return err
}

// Publish puts a staged write into its place. Errors: fs.ErrExist when create found something
// there; ErrChanged, and then it is in place all the same, until Undo.
func (c *Changer) Publish(w *Write) error {
	err := c.holdTree()
	if err != nil {
		return err
	}
	c.trim()
	from, to := TmpDir+"/"+w.Staged, w.Path
	switch w.Action {
	case Create:
		err = c.renameNew(from, to)
	case Replace:
		if err = c.exchange(from, to); errors.Is(err, fs.ErrNotExist) && !w.There {
			w.Gone = true
			err = c.renameNew(from, to)
		}
	case Remove:
		if err = c.rename(to, from); errors.Is(err, fs.ErrNotExist) && !w.There {
			w.Gone, err = true, nil
		}
	}
	w.Done = err == nil
	if w.Done && !w.Gone && w.Action != Create && !c.tree.holds(from, w.before()) { // what was renamed away is in no history
		return ErrChanged
	}
	return err
}

// before is the SHA-256 of what lay at the path when w was planned.
func (w *Write) before() string {
	if w.Action == Remove {
		return w.Sum
	}
	return w.Was
}

// Undo takes back what stage and publish did, as far as it was done. What somebody wrote there
// since is left alone.
func (c *Changer) Undo(w *Write) error {
	if err := c.holdTree(); err != nil {
		return err
	}
	from, to := TmpDir+"/"+w.Staged, w.Path
	if !w.Done {
		if w.Action == Remove || w.Staged == "" {
			return nil
		}
		return IgnoreGone(c.remove(from))
	}
	w.Done = false
	if w.Action == Remove {
		if w.Gone {
			return nil
		}
		if err := c.renameNew(from, to); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
	own, err := c.tree.HasSHA256(to, w.Sum)
	switch {
	case err != nil || !own:
		return err
	case w.Action == Replace && !w.Gone:
		if err := c.exchange(from, to); err != nil {
			return err
		}
		return IgnoreGone(c.remove(from))
	}
	return IgnoreGone(c.remove(to))
}

// Tidy removes what a finished write left below tmp: the file that was replaced or removed.
func (c *Changer) Tidy(w *Write) {
	if w.Action != Create && !w.Gone && c.holdTree() == nil {
		c.remove(TmpDir + "/" + w.Staged)
	}
}

// Touch sets the time of an untracked run-time file, making it where it is missing. Errors: a
// *FormatError for what is no regular file.
func (t *Tree) Touch(p string, now time.Time) error {
	return t.withRoot(func(root *os.Root) error {
		if st, err := t.Stat(p); err == nil && !st.Mode.IsRegular() {
			return NotRegular(st.Mode)
		}
		if err := root.MkdirAll(path.Dir(p), 0o700); err != nil {
			return err
		}
		f, err := root.OpenFile(p, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
		if err != nil {
			return err
		}
		f.Close()
		return root.Chtimes(p, now, now)
	})
}

// IgnoreGone returns err, but nil where it says that nothing is there.
func IgnoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// WriteFile puts a file outside any tree (the store's own key, token) into place durably: 0600,
// whole or absent.
func WriteFile(name string, data []byte) error { return ReplaceFile(name, data, 0o600) }

// ReplaceFile is WriteFile with another mode.
func ReplaceFile(name string, data []byte, mode fs.FileMode) error {
	tmp, err := os.CreateTemp(path.Dir(name), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	if _, err = tmp.Write(data); err == nil {
		err = cmp.Or(tmp.Chmod(mode), tmp.Sync())
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
	return SyncDir(path.Dir(name))
}

// WriteRun puts a file of the untracked run-time state at p, whole or the old one for every reader;
// other processes may do the same. It is not durable. Nothing is made where no store was opened:
// there is no place to stage it then, which is fs.ErrNotExist.
func (t *Tree) WriteRun(p string, data []byte) error {
	return t.withRoot(func(root *os.Root) error {
		if st, err := t.Stat(TmpDir); err != nil || !st.Mode.IsDir() {
			return cmp.Or(err, fs.ErrNotExist)
		}
		staged := fmt.Sprintf("%s/%s-%d-%d", TmpDir, path.Base(p), os.Getpid(), time.Now().UnixNano())
		f, err := root.OpenFile(staged, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return err
		}
		_, err = f.Write(data)
		if err = cmp.Or(err, f.Close()); err == nil {
			err = root.MkdirAll(path.Dir(p), 0o700)
		}
		if err == nil {
			err = root.Rename(staged, p)
		}
		if err != nil {
			root.Remove(staged)
		}
		return err
	})
}

// RemoveRun removes a file of the untracked run-time state; where none is there it does nothing.
func (t *Tree) RemoveRun(p string) error {
	return t.withRoot(func(root *os.Root) error { return IgnoreGone(root.Remove(p)) })
}

// SyncDir makes durable which names a folder outside any tree has.
func SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// SyncFolder makes durable which names the folder at p has.
func (t *Tree) SyncFolder(p string) error {
	return t.withRoot(func(root *os.Root) error {
		d, err := root.Open(p)
		if err != nil {
			return err
		}
		defer d.Close()
		return d.Sync()
	})
}

// Exists reports whether anything lies at p; false also where its folder may not be searched. The
// error is a fault of the machine.
func (t *Tree) Exists(p string) (bool, error) {
	_, err := t.Stat(p)
	if FaultOf(err) == FaultMachine {
		return false, err
	}
	return err == nil, nil
}

// holds is HasSHA256 where a fault of the machine counts as no.
func (t *Tree) holds(p, sum string) bool {
	is, err := t.HasSHA256(p, sum)
	return is && err == nil
}

// SHA256 is the SHA-256 of data in hex, as Write.Sum and HasSHA256 have it.
func SHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// HasSHA256 reports whether the file at p has that SHA-256, in hex. What is gone, has become
// something else or may not be read has not. The error is a fault of the machine: then it cannot be
// told.
func (t *Tree) HasSHA256(p, sum string) (bool, error) {
	f, st, err := t.Open(p)
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
	return false, MachineFault(err)
}

// EmptyTmp removes everything below tmp. Errors: of all that could not be removed.
func (t *Tree) EmptyTmp() error {
	entries, err := t.List(TmpDir)
	for _, e := range entries {
		err = errors.Join(err, t.RemoveStaged(e.Name()))
	}
	return err
}

// RemoveStaged removes what lies below tmp by that name, a folder with all that is in it.
func (t *Tree) RemoveStaged(name string) error {
	return t.withRoot(func(root *os.Root) error { return root.RemoveAll(TmpDir + "/" + name) })
}
