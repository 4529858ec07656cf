package gitlog

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"mailtree/maildir/gitlog/reflock"
	"mailtree/maildir/tree"
)

// mark is the content of .git/mailtree-mark, which describes what we are about to do while holding Git's locks. It is
// durable before we take the locks. If we are killed, the next run uses the mark to distinguish our own lock from a
// user's lock, and to finish or undo the commit. Like the recorded branch, the mark is in .git, because no pull or
// clone can write a file there.
type mark struct {
	PID    int      `json:"pid"`
	Branch string   `json:"branch"`
	Old    string   `json:"old"`   // the commit that the branch moves from; forty zeros before the first commit
	New    string   `json:"new"`   // the commit that the branch moves to
	Index  []string `json:"index"` // checksums of the indexes that we may have moved into place
	Lock   string   `json:"lock"`  // the content of our index.lock
	Log    string   `json:"log"`   // the text of the reflog entry for the move
}

const (
	markFile   = "mailtree-mark" // all these files are in .git
	branchFile = "mailtree-branch"
	indexStage = "mailtree-index" // our index before it is renamed to index
	lockStage  = "mailtree-lock"  // our lock before it is linked as index.lock
)

func (r *repository) writeMark(m *mark) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return r.writeWhole(markFile, append(b, '\n'), 0o600)
}

// readMark returns nil if there is no mark, and an empty mark if a power failure has damaged it. In the latter case,
// no lock was taken, because the mark is made durable before any lock is taken.
func (r *repository) readMark() (*mark, error) {
	b, err := readSmall(r.path(markFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &mark{}
	if json.Unmarshal(b, m) != nil {
		return &mark{}, nil
	}
	return m, nil
}

// stageLock writes the lock's text to the mark, and then writes the file that will become index.lock. The lock is not
// an index. It only keeps other programs out.
func (r *repository) stageLock(m *mark) error {
	m.PID = os.Getpid()
	m.Lock = fmt.Sprintf("held by the mailtree server, process %d; after a crash, the server removes this lock when it starts (%s)\n",
		m.PID, rand.Text())
	if err := r.writeMark(m); err != nil {
		return err
	}
	return r.writeWhole(lockStage, []byte(m.Lock), 0o600)
}

// syncStaged makes the staged index, lock and mark durable. It must be called before a lock is taken.
func (r *repository) syncStaged() error { return syncAll(r.git, indexStage, lockStage, markFile) }

// unstage removes the staged files. The mark is removed last.
func (r *repository) unstage() error {
	for _, f := range []string{indexStage, indexStage + ".lock", lockStage, reflock.Stage, markFile} {
		if err := tree.IgnoreGone(os.Remove(r.path(f))); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether index.lock is our lock. Any error is transient.
func (m *mark) holds(r *repository) (bool, error) {
	b, err := readSmall(r.path("index.lock"))
	if transient(err) {
		return false, err
	}
	return err == nil && m.Lock != "" && string(b) == m.Lock, nil
}

// writeWhole atomically replaces one of our files in .git. The caller must make the result durable.
func (r *repository) writeWhole(name string, data []byte, mode fs.FileMode) error {
	tmp := r.path("mailtree-new-" + rand.Text()) // another process may be writing the same file
	err := writeNew(tmp, data, mode)
	if err == nil {
		err = os.Rename(tmp, r.path(name))
	}
	return err
}

// writeNew creates a file, which must not exist yet, with the given content.
func writeNew(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
