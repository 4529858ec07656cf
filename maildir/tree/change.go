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

// Only the code in this file and in change_*.go (one for each operating system) changes the tree. A change is staged
// below TmpDir, made durable, and moved into place with one rename, so a reader sees either the old file or the new
// file. See docs/explanation/durability.md, "How one operation is written".

// TmpDir is the folder in the tree where files are staged. Git does not track it, and it is on the same file system
// as the tree.
const TmpDir = ".mailtree/tmp"

// Action says what a write does to the file at its path.
type Action uint8

const (
	Create  Action = iota // the path must not exist: creation is exclusive, so only one writer can succeed
	Replace               // the path may exist: an existing file is replaced atomically
	Remove                // the file at the path is removed
)

// Write is an operation's change to one file.
type Write struct {
	Path   string
	Action Action
	Data   []byte
	Sum    string   // SHA-256, in hex, of Data or, for a removal, of the removed file
	Was    string   // for a replacement, SHA-256 of the old file as planned; empty if the history lacks it
	Staged string   // the name below TmpDir, once the file is staged
	Stat   FileStat // the state of the staged file
	Done   bool     // the write has been moved into place
	There  bool     // for a replacement or removal: fail if the file no longer exists
	Gone   bool     // there was no file to remove or to replace
}

// Changer changes a tree for one group of operations. It keeps the tree and the group's folders open until Close, but
// not between groups, because a user may move them. The tree must stay open from before the first file is staged
// until after the last sync, because syncfs reports only write errors that occurred since its descriptor was opened.
// Only one goroutine at a time may use a Changer. The field tree must be set; the other fields are optional.
type Changer struct {
	tree *Tree
	held bool
	most int // the maximum number of folders to keep open
	folders
}

// holdTree opens the tree and keeps it open until Close.
func (c *Changer) holdTree() error {
	if c.held {
		return nil
	}
	err := c.tree.hold()
	c.held = err == nil
	return err
}

// Close closes the tree and the folders. The Changer can be used again afterwards.
func (c *Changer) Close() {
	c.forgetFolders()
	if c.held {
		c.held = false
		c.tree.release()
	}
}

// MostFolders is the maximum number of folders that a Changer keeps open. More open folders would not make it faster.
const MostFolders = 256

// Changer returns a Changer for the tree. The argument folders is the maximum number of folders that it keeps open; 0
// means MostFolders.
func (t *Tree) Changer(folders int) *Changer {
	return &Changer{tree: t, most: cmp.Or(folders, MostFolders)}
}

// ErrChanged means that another program wrote to the path between planning and renaming. It wraps fs.ErrExist, so the
// caller plans the operation again.
var ErrChanged = fmt.Errorf("the file was changed in the meantime: %w", fs.ErrExist)

// Stage writes w's data to a file with the given name below TmpDir, and creates the folders that w.Path needs. For a
// removal, Stage only records the name. Nothing is durable yet.
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

// Publish moves a staged write into place. If the write is to create a file, but a file already exists at the path,
// Publish returns fs.ErrExist. If the old file is not the file that was planned to be replaced or removed, it returns
// ErrChanged, but leaves the write in place until Undo.
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
	// The old file must be the one that was planned, because the history contains that file.
	if w.Done && !w.Gone && w.Action != Create && !c.tree.holds(from, w.before()) {
		return ErrChanged
	}
	return err
}

// before returns the SHA-256 of the file at the path at the time w was planned.
func (w *Write) before() string {
	if w.Action == Remove {
		return w.Sum
	}
	return w.Was
}

// Undo reverts Stage and Publish, even if one of them failed halfway. If another program has written to the path since
// then, Undo does not change that program's file. If a user has moved the folder since then, Undo reverts the change in
// the moved folder. Otherwise, a part of the operation would come back together with the folder.
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
	own, err := c.isPublished(w)
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

// isPublished reports whether the file that Publish moved to the path is still there. If the path has a different file
// or none, isPublished looks in the folder that the Changer has open, which a user may have moved.
func (c *Changer) isPublished(w *Write) (bool, error) {
	own, err := c.tree.HasSHA256(w.Path, w.Sum)
	if err != nil || own {
		c.forgetFolder(path.Dir(w.Path)) // the path may have a new folder
		return own, err
	}
	at, _ := c.tree.Stat(w.Path)
	st, err := c.Stat(w.Path)
	return err == nil && st.Inode != at.Inode && st.Inode == w.Stat.Inode && st.Size == w.Stat.Size && st.MTime == w.Stat.MTime, nil
}

// Tidy cleans up after a finished write by removing from TmpDir the old file that the write has replaced or removed.
func (c *Changer) Tidy(w *Write) {
	if w.Action != Create && !w.Gone && c.holdTree() == nil {
		c.remove(TmpDir + "/" + w.Staged)
	}
}

// Touch sets the modification time of an untracked run-time file, and creates the file if it is missing. It returns a
// *FormatError if p is not a regular file.
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

// IgnoreGone returns nil if err means that the file does not exist, and err otherwise.
func IgnoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// WriteFile durably writes a file outside all trees (such as the store's key or token) with mode 0600. A reader sees
// either the complete new file or the previous state.
func WriteFile(name string, data []byte) error { return ReplaceFile(name, data, 0o600) }

// ReplaceFile is like WriteFile, but uses the given mode.
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

// WriteRun writes the file p, which is part of the untracked run-time state. A reader always sees either the complete
// new file or the old file, even while other processes are writing the file. The write is not durable. WriteRun returns
// fs.ErrNotExist if there is no TmpDir because no server has ever opened the tree.
func (t *Tree) WriteRun(p string, data []byte) error { return t.replaceRun(p, data, false) }

// SaveRun is like WriteRun, but the file is durable before SaveRun returns.
func (t *Tree) SaveRun(p string, data []byte) error {
	if err := t.replaceRun(p, data, true); err != nil {
		return err
	}
	if err := t.SyncFolder(path.Dir(path.Dir(p))); err != nil { // the file's folder may be new, too
		return err
	}
	return t.SyncFolder(path.Dir(p))
}

func (t *Tree) replaceRun(p string, data []byte, durable bool) error {
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
		if err == nil && durable {
			err = f.Sync()
		}
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

// RemoveRun removes a file from the untracked run-time state. It returns nil if the file does not exist.
func (t *Tree) RemoveRun(p string) error {
	return t.withRoot(func(root *os.Root) error { return IgnoreGone(root.Remove(p)) })
}

// SyncDir makes the entries of a folder outside all trees durable.
func SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// SyncFolder makes the entries of the folder p durable.
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

// Exists reports whether there is a file or folder at p. It also returns false if the process lacks permission to
// search p's folder. It returns an error only for a machine fault.
func (t *Tree) Exists(p string) (bool, error) {
	_, err := t.Stat(p)
	if FaultOf(err) == FaultMachine {
		return false, err
	}
	return err == nil, nil
}

// holds is like HasSHA256, but returns false if there is a machine fault.
func (t *Tree) holds(p, sum string) bool {
	is, err := t.HasSHA256(p, sum)
	return is && err == nil
}

// SHA256 returns the SHA-256 of data in hex, in the form that Write.Sum and HasSHA256 use.
func SHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// HasSHA256 reports whether the file at p has the given SHA-256 (in hex). It returns false if the file does not exist
// or is not a regular file, or if the process lacks permission to read it. If there is a machine fault, it returns an
// error, because it is unknown whether the file has that SHA-256.
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

// EmptyTmp removes everything below TmpDir. It returns the joined errors of all entries that could not be removed.
func (t *Tree) EmptyTmp() error {
	entries, err := t.List(TmpDir)
	for _, e := range entries {
		err = errors.Join(err, t.RemoveStaged(e.Name()))
	}
	return err
}

// RemoveStaged removes the named file or folder below TmpDir, including a folder's contents.
func (t *Tree) RemoveStaged(name string) error {
	return t.withRoot(func(root *os.Root) error { return root.RemoveAll(TmpDir + "/" + name) })
}
