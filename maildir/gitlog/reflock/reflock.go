// Package reflock moves a branch of a Git repository while it holds Git's lock files, so that a concurrent git command
// waits, fails, or sees the move. It does not use the git program.
package reflock

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// Lock holds the locks of HEAD and of a branch.
type Lock struct {
	git          *os.Root // an os.Root, so that no file is created at the old path if .git is removed or moved
	branch, line string
	held         []string
}

// HeldError means that another program holds a lock.
type HeldError struct{ Name string } // the path of the lock, relative to .git

func (e *HeldError) Error() string { return "another program holds the lock " + e.Name }

// Unwrap returns fs.ErrExist.
func (e *HeldError) Unwrap() error { return fs.ErrExist }

// Stage is the file in .git that contains a branch's next value, before Take links it as the branch's lock file.
// A killed process may leave it behind.
const Stage = "mailtree-ref"

// Take locks a branch and HEAD, so that the branch can be moved. The argument to is the hash of the commit that the
// branch will point to, and line is the new entry for the reflogs. As with git update-ref, the lock file of the branch
// contains the new commit. The lock file of HEAD is a hard link to the file headLock in .git. The error may be a
// *HeldError.
func Take(git, branch, to, line, headLock string) (_ *Lock, err error) {
	l := &Lock{branch: branch, line: strings.ReplaceAll(line, "\n", " ") + "\n"}
	if l.git, err = os.OpenRoot(git); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if err := l.git.MkdirAll(path.Dir(branch), 0o755); err != nil {
		return nil, err
	}
	if fi, err := l.git.Lstat(branch); err == nil && fi.IsDir() { // Git may leave an empty folder behind
		if err := l.git.Remove(branch); err != nil {
			return nil, err
		}
	}
	if err := l.git.Remove(Stage); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	defer l.git.Remove(Stage)
	if err := l.write(Stage, os.O_EXCL|os.O_SYNC, to+"\n"); err != nil {
		return nil, err
	}
	for _, lock := range [][2]string{{Stage, branch + ".lock"}, {headLock, "HEAD.lock"}} {
		err := l.git.Link(lock[0], lock[1])
		if errors.Is(err, fs.ErrExist) {
			err = &HeldError{lock[1]}
		}
		if err != nil {
			return nil, err
		}
		l.held = append(l.held, lock[1])
	}
	return l, nil
}

// write appends text to a file, and creates the file if necessary.
func (l *Lock) write(name string, flags int, text string) error {
	f, err := l.git.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK|flags, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Move moves the branch and releases the locks. The caller must make the move durable.
func (l *Lock) Move() (err error) {
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, name := range []string{"logs/HEAD", "logs/" + l.branch} {
		if err := l.git.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		if err := l.write(name, 0, l.line); err != nil {
			return err
		}
	}
	if err := l.git.Rename(l.branch+".lock", l.branch); err != nil {
		return err
	}
	l.held = l.held[1:]
	return nil
}

// Close releases the locks that are still held. If Move was not called, the branch is unchanged.
func (l *Lock) Close() (err error) {
	for _, name := range l.held {
		if gone := l.git.Remove(name); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	l.held = nil
	return errors.Join(err, l.git.Close())
}
