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

	"golang.org/x/sys/unix"

	"mailtree/maildir/hook"
	"mailtree/maildir/keys"
	"mailtree/maildir/refusal"
	"mailtree/maildir/registry"
	"mailtree/maildir/tree"
)

// Lock is the ownership of a store: a flock on its server.lock, which the kernel gives up with the
// process.
type Lock struct{ file *os.File }

// Take makes the store's folder (0700) where it is missing and takes its lock. Errors: ErrConflict
// when another process holds it (the text says which), ErrUnavailable when the folder cannot be
// used.
// See docs/tree.md, "The store".
func Take(root string) (*Lock, error) {
	if entries, err := os.ReadDir(root); err == nil && len(entries) > 0 && !slices.ContainsFunc(entries, isStoreFile) {
		return nil, &refusal.Error{
			What: refusal.Invalid("The folder {=other} holds other files and no mail store: set {place of the store} to an empty or new " +
				"folder."),
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
			What: refusal.Unavailable("The store {=other} cannot be written: {why}. Check its permissions and whether the disk is full " +
				"or read-only, or set {place of the store} to another folder."),
			Other: root,
			Why:   err.Error(),
			Err:   err,
		}
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &refusal.Error{
				What: refusal.Conflict("The store {=other} is in use by process {=name}: use that one, stop it, or set {place of the store} " +
					"to another folder."),
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
	// Who holds it is for people to read; a disk too full for it is no reason to refuse.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &Lock{f}, nil
}

// openLock opens the lock file. Errors: ErrUnavailable for what is no file; as of os.OpenFile.
func openLock(root string, flags int) (*os.File, error) {
	name := filepath.Join(root, lockFile)
	f, _, err := tree.OpenPlain(name, flags)
	return f, registry.WrongFile(err, refusal.Unavailable("{=other} is {why}: no server can take the store with it: remove it, and "+
		"start again."), name)
}

// CheckLock opens the lock file as a server does, and closes it. It changes nothing. Errors: as of
// Take; fs.ErrNotExist.
func CheckLock(root string) error {
	f, err := openLock(root, os.O_RDONLY)
	f.Close() // of nil, an error
	return err
}

// IsStore reports whether a store is at root: somebody took its lock once.
func IsStore(root string) bool {
	_, err := os.Lstat(filepath.Join(root, lockFile))
	return err == nil
}

// isStoreFile recognises a store by any of its own files.
func isStoreFile(e os.DirEntry) bool {
	return keys.IsFile(e.Name()) || slices.Contains([]string{lockFile, ProjectsDir, OwnersFile, hook.ListFile}, e.Name())
}

// OwnersFile says who owns which mailbox. Only a server reads it.
const OwnersFile = "owners.json"

const (
	lockFile   = "server.lock"
	socketFile = "server.sock"
	logFile    = "server.log"
)

// IndexPath is the SQLite database of the store at root. It has a folder of its own, because the watcher
// watches root and would wake at each page that SQLite writes there.
func IndexPath(root string) string { return filepath.Join(root, "index", "index.sqlite3") }

// MoveIndex moves the database that an older version has left in root to IndexPath. It is called before
// the database is opened; after an error the database is made anew.
func MoveIndex(root string) error {
	old, now := filepath.Join(root, "index.sqlite3"), IndexPath(root)
	if _, err := os.Lstat(old); err != nil {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(now), 0o700)
	for _, suffix := range []string{"-shm", "-wal", ""} { // the database last: after a kill the rest follows
		if renamed := os.Rename(old+suffix, now+suffix); !errors.Is(renamed, fs.ErrNotExist) {
			err = errors.Join(err, renamed)
		}
	}
	return err
}

// SocketPath is the Unix socket of the process that owns the store at root.
// See docs/tree.md, "The store".
func SocketPath(root string) string { return filepath.Join(root, socketFile) }

// LogPath is where a server in the background logs.
func LogPath(root string) string { return filepath.Join(root, logFile) }

// OpenLog opens the log of a server in the background for appending, making it where it is missing;
// the caller closes it. It follows no symbolic link. Errors name the file: ErrUnavailable for what
// is no regular file.
func OpenLog(root string) (*os.File, error) {
	f, err := openLog(root, os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil && !errors.Is(err, refusal.ErrUnavailable) {
		err = fmt.Errorf("the log %s cannot be written: %w", LogPath(root), err)
	}
	return f, err
}

// CheckLog opens the log as a server does, and closes it. It changes nothing. Errors: as of
// OpenLog; fs.ErrNotExist.
func CheckLog(root string) error {
	f, err := openLog(root, os.O_RDONLY)
	f.Close() // of nil, an error
	return err
}

func openLog(root string, flags int) (*os.File, error) {
	f, _, err := tree.OpenPlain(LogPath(root), flags|unix.O_NOFOLLOW)
	return f, registry.WrongFile(err, refusal.Unavailable("{=other} is {why}: a server in the background cannot log there: move it "+
		"elsewhere."), LogPath(root))
}

// maxLockFile is how much of the lock file is read, in bytes: a process number.
const maxLockFile = 64

// Holder is the process number that the lock file names, "unknown" when it names none. It may be
// stale: only a failed Take, or Held, says that somebody holds it.
func Holder(root string) string {
	data, _, err := tree.ReadPlain(filepath.Join(root, lockFile), maxLockFile)
	pid := strings.TrimSpace(string(data))
	if _, aerr := strconv.Atoi(pid); err != nil || aerr != nil {
		return "unknown"
	}
	return pid
}

// Release gives the store up. It unlocks the file before it closes it: a process that was forked a moment
// ago, and has not run its program yet, still has the file open.
func (l *Lock) Release() error {
	return errors.Join(unix.Flock(int(l.file.Fd()), unix.LOCK_UN), l.file.Close())
}

// Held reports whether some process owns the store. It makes and writes nothing. For a moment it
// has a lock of its own, which it shares with others who ask.
func Held(root string) bool {
	f, err := openLock(root, os.O_RDONLY)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}
