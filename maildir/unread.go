package maildir

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// unreadPaths are the files and folders of a project that a fault of the machine kept the index
// from looking at. Each is tried again with back-off. Until then its rows are as old as they are,
// and a decision that hangs on it is refused. Safe for concurrent use; the zero value is ready.
type unreadPaths struct {
	mu    sync.Mutex
	paths map[string]*unreadPath
	timer *time.Timer // for the path that is to be tried next
}

type unreadPath struct {
	err   error
	tries int
	next  time.Time
}

// Back-off of an unread path.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// update takes what an ingest of the paths asked could not look at, and returns those that were
// looked at before. retry is called with the paths that are due.
func (u *unreadPaths) update(asked []string, left []tree.Unread, retry func(paths []string)) (fresh []tree.Unread) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.paths) == 0 && len(left) == 0 {
		return nil
	}
	before := u.paths
	u.paths = maps.Clone(before)
	maps.DeleteFunc(u.paths, func(p string, _ *unreadPath) bool { return coveredBy(p, asked) })
	if u.paths == nil {
		u.paths = map[string]*unreadPath{}
	}
	now := time.Now()
	for _, l := range left {
		tries := 0
		if old := before[l.Path]; old != nil {
			tries = old.tries + 1
		} else {
			fresh = append(fresh, l)
		}
		u.paths[l.Path] = &unreadPath{l.Err, tries, now.Add(min(firstRetry<<min(tries, 16), lastRetry))}
	}
	u.schedule(now, retry)
	return fresh
}

// schedule sets the timer for the path that is due next. u.mu is held.
func (u *unreadPaths) schedule(now time.Time, retry func(paths []string)) {
	if u.timer != nil {
		u.timer.Stop()
	}
	var next time.Time
	for _, p := range u.paths {
		if p.next.After(now) && (next.IsZero() || p.next.Before(next)) {
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
			}
		}
		u.schedule(now, retry)
		u.mu.Unlock()
		retry(due)
	})
}

// coveredBy reports whether p is one of the paths or lies below one.
func coveredBy(p string, paths []string) bool {
	return slices.ContainsFunc(paths, func(a string) bool { return a == "." || p == a || strings.HasPrefix(p, a+"/") })
}

// any returns an unread path that the function accepts; false when there is none.
func (u *unreadPaths) any(accepts func(path string) bool) (tree.Unread, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for path, p := range u.paths {
		if accepts(path) {
			return tree.Unread{Path: path, Err: p.err}, true
		}
	}
	return tree.Unread{}, false
}

// Unread lists what a fault of the machine keeps the index from looking at, by path; it is tried
// again by itself.
func (p *Project) Unread() []tree.Unread {
	p.waiting.mu.Lock()
	defer p.waiting.mu.Unlock()
	var all []tree.Unread
	for _, path := range slices.Sorted(maps.Keys(p.waiting.paths)) {
		all = append(all, tree.Unread{Path: path, Err: p.waiting.paths[path].err})
	}
	return all
}

// noteUnread takes what an ingest of the paths asked could not look at.
func (p *Project) noteUnread(asked []string, left []tree.Unread) {
	fresh := p.waiting.update(asked, left, func(due []string) { p.Edited(due, false) })
	if len(fresh) > 0 {
		p.store.cfg.Log.Warn("files not looked at; they are tried again",
			"project", p.slug, "files", len(fresh), "first", fresh[0].Path, "error", fresh[0].Err)
	}
}

// needRead refuses a decision that hangs on files at or below the places, where one of them, or a
// folder above, could not be looked at. Errors: ErrUnavailable.
func (p *Project) needRead(places ...string) error {
	return p.refuseUnread(func(path string) bool {
		return path == "." || slices.ContainsFunc(places, func(place string) bool {
			return coveredBy(path, []string{place}) || strings.HasPrefix(place, path+"/")
		})
	})
}

// needReadAgent is needRead for the folder of an agent whatever the case of its name.
func (p *Project) needReadAgent(name string) error {
	return p.refuseUnread(func(path string) bool {
		rest, isAgents := strings.CutPrefix(path, format.AgentsDir+"/")
		folder, _, _ := strings.Cut(rest, "/")
		return path == "." || path == format.AgentsDir || isAgents && strings.EqualFold(folder, name)
	})
}

// needReadMessage is needRead for the files of a message, wherever they lie.
func (p *Project) needReadMessage(id string) error {
	return p.refuseUnread(func(path string) bool {
		at := format.Locate(path)
		return at.ID == id || at.Kind == format.KindOther || path == "."
	})
}

func (p *Project) refuseUnread(decides func(path string) bool) error {
	if u, is := p.waiting.any(decides); is {
		return unreadRefusal(u)
	}
	return nil
}

func unreadRefusal(u tree.Unread) error {
	return &Error{
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
