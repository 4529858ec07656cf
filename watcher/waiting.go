package watcher

import (
	"slices"
	"sync"
	"time"
)

// waiting contains the changed paths that have not been reported yet, each with its deadline. It also records whether a
// Scan has been requested.
type waiting struct {
	cfg  Config
	wake chan struct{} // contains a token if dispatch must wake up before its current deadline

	// closed reports whether no process has the file at a path open for writing. It is nil if the system
	// cannot tell.
	closed func(rel string) bool

	mu    sync.Mutex
	paths map[string]deadline
	scan  time.Time // when the pending Scan was requested; zero if no Scan is pending
	armed time.Time // the deadline until which dispatch sleeps; zero if it sleeps until wake

	flying int       // size of the batch that OnBatch is handling
	flown  time.Time // time of the first event in the batch that OnBatch is handling
}

// deadline says when to report a path.
type deadline struct {
	first   time.Time // time of the path's first unreported event
	due     time.Time
	written bool // whether the path was written in place and therefore needs the longer quiet time

	ask  time.Time     // when to check whether the writer has closed the file; zero means never
	wait time.Duration // time between ask and the following check
}

// next returns the time of the next check of the path.
func (d deadline) next() time.Time { return earlier(d.ask, d.due) }

func newWaiting(cfg Config) *waiting {
	return &waiting{cfg: cfg, wake: make(chan struct{}, 1), paths: map[string]deadline{}}
}

// touch notes events on a path. The arguments first and last are the times of the first and the last of these events.
// touch moves the path's deadline to Write or Rename after the last event, but no later than Longest after the first
// unreported event.
func (q *waiting) touch(rel string, first, last time.Time, written bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	d, ok := q.paths[rel]
	if !ok {
		d.first = first
	}
	d.written = d.written || written
	quiet := q.cfg.Rename
	if d.written {
		quiet = q.cfg.Write
	}
	d.due = last.Add(quiet)
	if longest := d.first.Add(q.cfg.Longest); longest.Before(d.due) {
		d.due = longest
	}
	if d.ask = (time.Time{}); d.written && q.closed != nil {
		d.ask, d.wait = last.Add(q.cfg.Rename), q.cfg.Rename
	}
	q.paths[rel] = d
	if q.armed.IsZero() || d.next().Before(q.armed) {
		notify(q.wake)
	}
}

// noted is like touch, but for a path that a walk found. Such a path is not treated as written in place.
func (q *waiting) noted(rel string, now time.Time) {
	written := false
	q.touch(rel, now, now, written)
}

// askScan requests a Scan, so that the next batch is due immediately and has Scan set. Further calls before that batch
// have no effect.
func (q *waiting) askScan() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.scan.IsZero() {
		q.scan = time.Now()
	}
	notify(q.wake)
}

// takeDue removes and returns the paths that are due now. If no path is due, it returns an empty batch and the time
// at which to call it again. A zero time means that the caller should wait for wake.
func (q *waiting) takeDue(now time.Time) (Batch, time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := Batch{Scan: !q.scan.IsZero()}
	first, next := q.scan, time.Time{}
	for rel, d := range q.paths {
		if d.due.After(now) && !q.finished(rel, &d, now) {
			next = earlier(next, d.next())
			continue
		}
		b.Paths = append(b.Paths, rel)
		first = earlier(first, d.first)
	}
	if !b.Scan && len(b.Paths) == 0 {
		q.armed = next
		return b, next
	}
	for _, rel := range b.Paths {
		delete(q.paths, rel)
	}
	if len(q.paths) == 0 {
		q.paths = map[string]deadline{} // a map never shrinks by itself
	}
	slices.Sort(b.Paths)
	q.flying, q.flown = len(b.Paths)+count(b.Scan), first
	q.scan, q.armed = time.Time{}, time.Time{}
	return b, time.Time{}
}

// finished reports whether a path can be reported early, because it was written in place and its writer has closed
// the file. If the file is still open, finished doubles the time until the next check.
func (q *waiting) finished(rel string, d *deadline, now time.Time) bool {
	if d.ask.IsZero() || d.ask.After(now) {
		return false
	}
	if q.closed(rel) {
		return true
	}
	d.wait *= 2
	d.ask = now.Add(d.wait)
	q.paths[rel] = *d
	return false
}

// reported records that OnBatch has handled the batch that takeDue returned.
func (q *waiting) reported() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flying, q.flown = 0, time.Time{}
}

// pending returns the number of unreported changes, including the batch that OnBatch is handling, and the
// time of the first event.
func (q *waiting) pending() (int, time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	oldest := earlier(q.scan, q.flown)
	for _, d := range q.paths {
		oldest = earlier(oldest, d.first)
	}
	return len(q.paths) + count(!q.scan.IsZero()) + q.flying, oldest
}

// earlier returns the earlier of two times. Zero means no time.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// count returns 1 for true and 0 for false.
func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// notify puts a token into c unless c already contains one.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
