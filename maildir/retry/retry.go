// Package retry remembers what a fault of the machine kept the index from looking at, and has each
// tried again with back-off. Until then the rows of such a file are as old as they are, and a
// decision that hangs on it is refused.
package retry

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"mailtree/maildir/tree"
)

// Set is the files and folders of one tree that could not be looked at. Safe for concurrent use;
// the zero value is ready.
type Set struct {
	mu    sync.Mutex
	paths map[string]*unread
	timer *time.Timer // for the path that is to be tried next
}

type unread struct {
	err   error
	tries int
	next  time.Time
}

// Back-off of an unread path.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Update takes what an ingest of the paths asked could not look at, and returns those that were
// looked at before. retry is called with the paths that are due.
func (u *Set) Update(asked []string, left []tree.Unread, retry func(paths []string)) (fresh []tree.Unread) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.paths) == 0 && len(left) == 0 {
		return nil
	}
	before := u.paths
	u.paths = maps.Clone(before)
	maps.DeleteFunc(u.paths, func(p string, _ *unread) bool { return Covers(p, asked) })
	if u.paths == nil {
		u.paths = map[string]*unread{}
	}
	now := time.Now()
	for _, l := range left {
		tries := 0
		if old := before[l.Path]; old != nil {
			tries = old.tries + 1
		} else {
			fresh = append(fresh, l)
		}
		u.paths[l.Path] = &unread{l.Err, tries, now.Add(min(firstRetry<<min(tries, 16), lastRetry))}
	}
	u.schedule(now, retry)
	return fresh
}

// schedule sets the timer for the path that is due next, which may be overdue: the timer that was set
// for it is stopped here. u.mu is held.
func (u *Set) schedule(now time.Time, retry func(paths []string)) {
	if u.timer != nil {
		u.timer.Stop()
	}
	var next time.Time
	for _, p := range u.paths {
		if next.IsZero() || p.next.Before(next) {
			next = p.next
		}
	}
	if next.IsZero() {
		return
	}
	u.timer = time.AfterFunc(next.Sub(now), func() {
		u.mu.Lock()
		now := time.Now()
		var due []string
		for path, p := range u.paths {
			if !p.next.After(now) {
				due = append(due, path)
				p.next = now.Add(lastRetry) // should nothing come of this try
			}
		}
		u.schedule(now, retry)
		u.mu.Unlock()
		if len(due) > 0 {
			retry(due)
		}
	})
}

// Covers reports whether p is one of the paths or lies below one.
func Covers(p string, paths []string) bool {
	return slices.ContainsFunc(paths, func(a string) bool { return a == "." || p == a || strings.HasPrefix(p, a+"/") })
}

// Any returns an unread path that the function accepts; false when there is none.
func (u *Set) Any(accepts func(path string) bool) (tree.Unread, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for path, p := range u.paths {
		if accepts(path) {
			return tree.Unread{Path: path, Err: p.err}, true
		}
	}
	return tree.Unread{}, false
}

// All lists what could not be looked at, by path.
func (u *Set) All() (all []tree.Unread) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(u.paths)) {
		all = append(all, tree.Unread{Path: path, Err: u.paths[path].err})
	}
	return all
}
