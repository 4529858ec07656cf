package gitlog

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"mailtree/maildir/gitlog/embedded"
	"mailtree/maildir/tree"
)

// mark is the content of .git/mailtree-mark: what we are about to do while holding Git's locks. It is made durable
// before we take the locks. With the mark, a later run can distinguish our own lock, left behind by a kill, from a
// user's lock, and can finish or undo the commit. Like the recorded branch, the mark is in .git, because no pull or
// clone can put a file there.
type mark struct {
	PID    int      `json:"pid"`
	Branch string   `json:"branch"`
	Old    string   `json:"old"`   // the commit that the branch moves from; forty zeros before the first commit
	New    string   `json:"new"`   // our commit
	Index  []string `json:"index"` // checksums of the indexes that we may have put into place
	Lock   string   `json:"lock"`  // the text of our index.lock
	Log    string   `json:"log"`   // the reflog text for the move
}

const (
	markFile   = "mailtree-mark" // these files are all in .git
	branchFile = "mailtree-branch"
	indexStage = "mailtree-index" // our index before it is renamed to index
	lockStage  = "mailtree-lock"  // our lock before it is linked as index.lock
)

func (r *repository) writeMark(m *mark) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return r.writeWhole(markFile, append(b, '\n'))
}

// readMark returns nil if there is no mark, and an empty mark if a power failure damaged it. A damaged mark means
// that no lock was taken, because the mark is made durable first.
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

// stageLock writes the file that will become index.lock, after writing its text to the mark. The file is not an
// index. It only keeps other programs out.
func (r *repository) stageLock(m *mark) error {
	m.PID = os.Getpid()
	m.Lock = fmt.Sprintf("held by the mailtree server, process %d; the server repairs this itself when it starts (%s)\n", m.PID, rand.Text())
	if err := r.writeMark(m); err != nil {
		return err
	}
	return r.writeWhole(lockStage, []byte(m.Lock))
}

// syncStaged makes the staged index, lock and mark durable. Locks are taken only after that.
func (r *repository) syncStaged() error { return syncAll(r.git, indexStage, lockStage, markFile) }

// unstage removes the staged files, with the mark last.
func (r *repository) unstage() error {
	for _, f := range []string{indexStage, indexStage + ".lock", lockStage, embedded.LockStage, markFile} {
		if err := tree.IgnoreGone(os.Remove(r.path(f))); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether index.lock is ours. Any error is transient.
func (m *mark) holds(r *repository) (bool, error) {
	b, err := readSmall(r.path("index.lock"))
	if transient(err) {
		return false, err
	}
	return err == nil && m.Lock != "" && string(b) == m.Lock, nil
}

// writeWhole atomically replaces one of our files in .git. The caller must make the file durable.
func (r *repository) writeWhole(name string, data []byte) error {
	tmp := r.path("mailtree-new-" + rand.Text()) // another process may write the same file
	err := writeNew(tmp, data, 0o600)
	if err == nil {
		err = os.Rename(tmp, r.path(name))
	}
	return err
}

// writeNew creates and writes a file that must not exist.
func writeNew(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
