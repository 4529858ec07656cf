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

// faults is what a fault of the machine keeps the index from looking at: the rows of such a file are as
// old as they are. All of it is tried every retryTime, and while there is any, what decides by it is
// refused. Safe for concurrent use; the zero value is ready.
type faults struct {
	mu    sync.Mutex
	paths map[string]error
	timer *time.Timer // runs while there is any
}

// Unread lists what a fault of the machine keeps the index from looking at, by path; it is tried
// again by itself.
func (k *Keeper) Unread() (all []tree.Unread) {
	k.faults.mu.Lock()
	defer k.faults.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(k.faults.paths)) {
		all = append(all, tree.Unread{Path: path, Err: k.faults.paths[path]})
	}
	return all
}

// noteUnread takes what an ingest of the paths asked could not look at.
func (k *Keeper) noteUnread(asked []string, left []tree.Unread) {
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
			k.Log.Warn("not looked at; that is tried again", "path", l.Path, "error", l.Err)
		}
	}
	if u.timer == nil {
		u.timer = time.AfterFunc(retryTime, k.retryUnread)
	}
}

// retryUnread has what could not be looked at looked at again.
func (k *Keeper) retryUnread() {
	k.faults.mu.Lock()
	due := slices.Collect(maps.Keys(k.faults.paths))
	k.faults.timer = nil
	select {
	case <-k.Writer.Stopped():
		due = nil
	default:
	}
	if len(due) > 0 {
		k.faults.timer = time.AfterFunc(retryTime, k.retryUnread)
	}
	k.faults.mu.Unlock()
	k.Edited(due, onlyThere)
}

// within reports whether a path is one of those, or lies below one.
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

// Sure refuses a decision by the whole tree while something in it cannot be looked at. Errors:
// ErrUnavailable.
func (k *Keeper) Sure() error {
	if all := k.Unread(); len(all) > 0 {
		return unreadError(all[0])
	}
	return nil
}

func unreadError(u tree.Unread) error {
	return &refusal.Error{
		What:  refusal.PathUnread,
		Other: u.Path,
		Why:   plainCause(u.Err),
		Err:   u.Err,
	}
}

// plainCause is what the system says of err, without paths.
func plainCause(err error) string {
	var no syscall.Errno
	if errors.As(err, &no) {
		return no.Error()
	}
	return "an unknown fault"
}
