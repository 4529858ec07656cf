package storedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mailtree/maildir/folders"
	"mailtree/maildir/hook"
	"mailtree/maildir/keys"
	"mailtree/maildir/refusal"
	"mailtree/maildir/registry"
	"mailtree/maildir/tree"
)

// Lock is the ownership of a store. It is a flock on the store's server.lock, which the kernel releases when the
// process exits.
type Lock struct{ file *os.File }

// forkTime is how long Take waits for a lock whose holder has exited. A child process that the holder has just forked
// may still have the file open until its exec.
const forkTime = 2 * time.Second

// isDead reports whether there is no process with the given PID.
func isDead(pid string) bool {
	n, err := strconv.Atoi(pid)
	return err == nil && errors.Is(unix.Kill(n, 0), unix.ESRCH)
}

// Take creates the store's folder (0700) if it is missing, and takes its lock. It returns ErrConflict, with the PID,
// if another process holds the lock. It returns ErrUnavailable if the folder cannot be used or if a newer version has
// written the store (CheckFormat). See docs/reference/tree.md, "The store".
func Take(root string) (*Lock, error) {
	if entries, err := os.ReadDir(root); err == nil && len(entries) > 0 && !slices.ContainsFunc(entries, isStoreFile) {
		return nil, &refusal.Error{
			What: refusal.Invalid("The folder {=other} contains other files and is not a mail store: set {place of " +
				"the store} to an empty or new folder."),
			Other: root,
		}
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, &refusal.Error{
			What:  refusal.StoreUnusable,
			Other: root,
			Why:   err.Error(),
			Err:   err,
		}
	}
	f, err := openLock(root, os.O_RDWR|os.O_CREATE)
	if errors.Is(err, refusal.ErrUnavailable) {
		return nil, err
	}
	if err != nil {
		return nil, &refusal.Error{
			What: refusal.Unavailable("The server cannot write to the store {=other}: {why}. Check its permissions " +
				"and whether the disk is full or read-only, or set {place of the store} to another folder."),
			Other: root,
			Why:   err.Error(),
			Err:   err,
		}
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	for end := time.Now().Add(forkTime); errors.Is(err, unix.EWOULDBLOCK) && isDead(Holder(root)) && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &refusal.Error{
				What: refusal.Conflict("The store {=other} is in use by process {=name}: use that server, stop it, " +
					"or set {place of the store} to another folder."),
				Other: root,
				Name:  Holder(root),
			}
		}
		return nil, &refusal.Error{
			What:  refusal.Unavailable("The store {=other} cannot be locked: {why}."),
			Other: root,
			Why:   err.Error(),
			Err:   err,
		}
	}
	if err := keepFormat(root); err != nil {
		f.Close()
		return nil, err
	}
	// A full disk must not prevent a start, so a failure to write the PID is ignored.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &Lock{f}, nil
}

// openLock opens the lock file. It returns ErrUnavailable if the file is not a regular file, or any error from
// os.OpenFile.
func openLock(root string, flags int) (*os.File, error) {
	name := filepath.Join(root, lockFile)
	f, _, err := tree.OpenPlain(name, flags|unix.O_NOFOLLOW)
	return f, registry.WrongFile(err, refusal.Unavailable("{=other} is {why}, so no server can lock the store. "+
		"Remove that file, then start the server again."), name)
}

// CheckLock opens the lock file as a server does, and closes it. It changes nothing. It returns the same errors as
// Take, or fs.ErrNotExist.
func CheckLock(root string) error {
	f, err := openLock(root, os.O_RDONLY)
	f.Close() // safe even if f is nil
	return err
}

// IsStore reports whether root is a store. A store has a lock file or a folder for projects. IsStore also returns true
// if it cannot read root, because root may then be a store.
func IsStore(root string) bool {
	for _, name := range []string{lockFile, ProjectsDir} {
		if _, err := os.Lstat(filepath.Join(root, name)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// isStoreFile reports whether e is one of a store's own files.
func isStoreFile(e os.DirEntry) bool {
	own := []string{lockFile, ProjectsDir, GatewayDir, OwnersFile, TrustedSendersFile, hook.ListFile}
	return keys.IsFile(e.Name()) || slices.Contains(own, e.Name())
}

// GatewayDir is the folder with the keys that sign mail to other domains.
const GatewayDir = "gateway"

// OwnersFile is the file that records the owner of each mailbox. Only a server reads it.
const OwnersFile = "owners.json"

// TrustedSendersFile is the file that lists each mailbox's trusted senders at other domains. Only a server reads it.
const TrustedSendersFile = "trusted_senders.json"

// InstalledFile is the file that lists what mailtree has written outside the store.
const InstalledFile = "installed"

// Lasting reports whether a file or folder with the given name in a store's folder is a permanent part of the store. It
// returns false for the projects, for the marks of hooks, for files of a running server, and for files that a server
// recreates.
func Lasting(name string) bool {
	own := []string{GatewayDir, OwnersFile, TrustedSendersFile, hook.ListFile, formatFile, InstalledFile, folders.FileName}
	return keys.IsFile(name) && !strings.HasSuffix(name, ".lock") || slices.Contains(own, name)
}

const (
	lockFile   = "server.lock"
	socketFile = "server.sock"
	logFile    = "server.log"
)

// IndexPath returns the path of the SQLite database of the store at root. The database has its own folder, because the
// watcher watches root and would wake up for every page that SQLite writes there.
func IndexPath(root string) string { return filepath.Join(root, "index", "index.sqlite3") }

// MoveIndex moves the database from its old path in root to IndexPath. It must be called before the database is opened.
// If it returns an error, a new database is built.
func MoveIndex(root string) error {
	old, now := filepath.Join(root, "index.sqlite3"), IndexPath(root)
	if _, err := os.Lstat(old); err != nil {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(now), 0o700)
	for _, suffix := range []string{"-shm", "-wal", ""} { // the database comes last, so that an interrupted move is repeated
		if renamed := os.Rename(old+suffix, now+suffix); !errors.Is(renamed, fs.ErrNotExist) {
			err = errors.Join(err, renamed)
		}
	}
	return err
}

// SocketPath returns the path of the Unix socket of the process that owns the store at root. See
// docs/reference/tree.md, "The store".
func SocketPath(root string) string { return filepath.Join(root, socketFile) }

// LogPath returns the path of a background server's log.
func LogPath(root string) string { return filepath.Join(root, logFile) }

// OpenLog opens a background server's log for appending, and creates the log if it is missing. The caller must close
// it. OpenLog does not follow symbolic links. Its errors contain the file's path. It returns ErrUnavailable if the log
// is not a regular file.
func OpenLog(root string) (*os.File, error) {
	f, err := openLog(root, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil && !errors.Is(err, refusal.ErrUnavailable) {
		err = fmt.Errorf("the log %s cannot be written: %w", LogPath(root), err)
	}
	return f, err
}

// CheckLog opens the log as a server does, and closes it. It changes nothing. It returns the same errors as OpenLog, or
// fs.ErrNotExist.
func CheckLog(root string) error {
	f, err := openLog(root, os.O_RDONLY)
	f.Close() // safe even if f is nil
	return err
}

func openLog(root string, flags int) (*os.File, error) {
	f, _, err := tree.OpenPlain(LogPath(root), flags|unix.O_NOFOLLOW)
	return f, registry.WrongFile(err, refusal.Unavailable("{=other} is {why}, so a background server cannot write "+
		"its log there. Move it elsewhere."), LogPath(root))
}

// maxLockFile is the maximum number of bytes to read from the lock file, which contains a PID.
const maxLockFile = 64

// Holder returns the PID in the lock file, or "unknown" if there is none. The PID may be stale. Only Held or a failed
// Take shows that a process holds the lock.
func Holder(root string) string {
	data, _, err := tree.ReadPlain(filepath.Join(root, lockFile), maxLockFile)
	pid := strings.TrimSpace(string(data))
	if _, aerr := strconv.Atoi(pid); err != nil || aerr != nil {
		return "unknown"
	}
	return pid
}

// Release releases the store's lock. It unlocks the file before closing it, because a child process that was just
// forked still has the file open until its exec.
func (l *Lock) Release() error {
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}

// Held reports whether a process owns the store. It does not create or write anything. It briefly takes a shared
// lock.
func Held(root string) bool {
	f, err := openLock(root, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}
