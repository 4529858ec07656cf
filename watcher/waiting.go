package watcher

import (
	"slices"
	"sync"
	"time"
)

// waiting contains the changed paths that are not reported yet, each with its deadline, and records whether to ask
// for a Scan.
type waiting struct {
	cfg  Config
	wake chan struct{} // contains one token if a deadline is earlier than the one that dispatch sleeps for

	// closed reports whether no process has the file at a path open for writing. It is nil if the system
	// cannot tell.
	closed func(rel string) bool

	mu    sync.Mutex
	paths map[string]deadline
	scan  time.Time // when the Scan was asked for; zero if none
	armed time.Time // deadline that dispatch sleeps for; zero: until wake

	flying int       // size of the batch that OnBatch is handling
	flown  time.Time // time of the first event of that batch
}

// deadline says when to report a path.
type deadline struct {
	first   time.Time // time of its first unreported event
	due     time.Time
	written bool // it was written in place and needs the longer quiet time

	ask  time.Time     // when to ask whether the writer has closed the file; zero: never
	wait time.Duration // time from ask until asking again
}

// next returns when to check the path again.
func (d deadline) next() time.Time { return earlier(d.ask, d.due) }

func newWaiting(cfg Config) *waiting {
	return &waiting{cfg: cfg, wake: make(chan struct{}, 1), paths: map[string]deadline{}}
}

// touch notes events on a path. The arguments first and last are the times of the first and the last event. It moves
// the path's deadline to Write or Rename after the last event, but no later than Longest after the first unreported
// event.
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

// noted is like touch, but for a path that a walk found. No event says that such a path was written.
func (q *waiting) noted(rel string, now time.Time) {
	written := false
	q.touch(rel, now, now, written)
}

// askScan makes the next batch a Scan that is due at once. Further calls before that Scan change nothing.
func (q *waiting) askScan() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.scan.IsZero() {
		q.scan = time.Now()
	}
	notify(q.wake)
}

// takeDue returns the paths that are due now. If no path is due, it returns an empty batch and the time at which to
// call it again. A zero time means that the caller should wait for wake.
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

// finished reports whether a path that is not due yet was written in place and has been closed by its
// writer. If not, it doubles the time until it asks again.
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

// reported ends the batch that takeDue returned.
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

// count returns 1 for true.
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
