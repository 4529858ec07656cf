package watcher

import (
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// queue contains the events that the reader has added and the session has not drained yet. It has one entry per path,
// no matter how many events arrive. The entries are in the order of the paths' first events.
type queue struct {
	wake chan struct{} // contains a token if there are events to drain

	mu        sync.Mutex
	index     map[string]int // each path's index in events
	events    []event
	lost      bool  // whether events were lost since the last drain
	overflows int64 // number of overflows so far

	busy  int       // number of events that the session has drained but not finished
	since time.Time // time of the first event that busy counts
}

// event summarizes one path's events.
type event struct {
	rel         string
	op          fsnotify.Op // all operations seen
	first, last time.Time
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), index: map[string]int{}}
}

// add notes one event.
func (q *queue) add(rel string, op fsnotify.Op, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i, ok := q.index[rel]
	if !ok {
		i = len(q.events)
		q.index[rel] = i
		q.events = append(q.events, event{rel: rel, first: now})
	}
	q.events[i].op |= op
	q.events[i].last = now
	notify(q.wake)
}

// overflow notes that the kernel dropped events. There is no way to find out which events were dropped.
func (q *queue) overflow() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lost = true
	q.overflows++
	notify(q.wake)
}

// drain removes and returns all events, and reports whether events were lost. The returned events remain pending until
// finished is called.
func (q *queue) drain() (events []event, lost bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	events, lost = q.events, q.lost
	q.events, q.lost = nil, false
	if len(events) > 0 {
		q.index = make(map[string]int)
		q.since = earlier(q.since, events[0].first)
	}
	q.busy += len(events) + count(lost)
	return events, lost
}

// finished records that the session has handled all drained events. The argument left is the number of folders that
// still have to be walked.
func (q *queue) finished(left int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy = left
	if left == 0 {
		q.since = time.Time{}
	}
}

// reset discards all events, because a Scan follows.
func (q *queue) reset() {
	q.drain()
	q.finished(0)
}

// pending returns the number of events that the session has not finished, the time of the first of them, and the
// number of overflows.
func (q *queue) pending() (n int, oldest time.Time, overflows int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	oldest = q.since
	if len(q.events) > 0 {
		oldest = earlier(oldest, q.events[0].first)
	}
	return q.busy + len(q.events) + count(q.lost), oldest, q.overflows
}
