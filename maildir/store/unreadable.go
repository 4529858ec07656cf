package store

import (
	"errors"
	"maps"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// faults contains the paths that the index cannot read because of a machine fault. Their rows in the index stay
// unchanged. All of these paths are retried every retryTime. Until they can be read, decisions that depend on them are
// refused. faults is safe for concurrent use, and its zero value is ready to use.
type faults struct {
	mu    sync.Mutex
	paths map[string]error
	timer *time.Timer // runs while paths is not empty
}

// Unreadable lists the files that the index cannot read because of a machine fault, sorted by path. They are retried
// automatically.
func (k *Keeper) Unreadable() (all []tree.Unreadable) {
	k.faults.mu.Lock()
	defer k.faults.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(k.faults.paths)) {
		all = append(all, tree.Unreadable{Path: path, Err: k.faults.paths[path]})
	}
	return all
}

// noteUnreadable records which of the requested paths could not be read during an ingest.
func (k *Keeper) noteUnreadable(asked []string, left []tree.Unreadable) {
	u := &k.faults
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.paths)+len(left) == 0 {
		return
	}
	before := u.paths
	u.paths = map[string]error{}
	maps.Copy(u.paths, before)
	maps.DeleteFunc(u.paths, func(path string, _ error) bool { return within(path, asked) })
	for _, l := range left {
		u.paths[l.Path] = l.Err
		if before[l.Path] == nil {
			k.Log.Warn("cannot read a file right now; will retry", "path", l.Path, "error", l.Err)
		}
	}
	if u.timer == nil {
		u.timer = time.AfterFunc(retryTime, k.retryUnreadable)
	}
}

// retryUnreadable schedules the unreadable paths to be ingested again.
func (k *Keeper) retryUnreadable() {
	k.faults.mu.Lock()
	due := slices.Collect(maps.Keys(k.faults.paths))
	k.faults.timer = nil
	select {
	case <-k.Writer.Stopped():
		due = nil
	default:
	}
	if len(due) > 0 {
		k.faults.timer = time.AfterFunc(retryTime, k.retryUnreadable)
	}
	k.faults.mu.Unlock()
	const scan = false // do not scan the rest of the tree
	k.Edited(due, scan)
}

// within reports whether a path is one of paths or is below one of them.
func within(at string, paths []string) bool {
	for {
		if slices.Contains(paths, at) {
			return true
		}
		if at == "." {
			return false
		}
		at = path.Dir(at)
	}
}

// Sure returns ErrUnavailable if any file currently cannot be read. Decisions about the whole tree must then be
// refused.
func (k *Keeper) Sure() error {
	if all := k.Unreadable(); len(all) > 0 {
		return unreadableError(all[0])
	}
	return nil
}

func unreadableError(u tree.Unreadable) error {
	return &refusal.Error{
		What:  refusal.PathUnread,
		Other: u.Path,
		Why:   plainCause(u.Err),
		Err:   u.Err,
	}
}

// plainCause returns the operating system's text for err, without paths.
func plainCause(err error) string {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no.Error()
	}
	return "an unknown error"
}
