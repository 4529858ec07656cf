package hook

import (
	"context"
	"slices"
	"sync"

	"mailtree/maildir"
)

// maxQueued bounds the memory of the queue; the feed keeps what has no room.
const maxQueued = 10_000

// queue hands out firings, to each owner's in their order and to owners in turn. One owner never
// has all workers, so that slow hooks of one delay nobody else's. Safe for concurrent use.
type queue struct {
	share int // of one owner, commands at once

	mu      sync.Mutex
	change  *sync.Cond
	waiting map[int][]maildir.Firing // by owner
	turns   []int                    // owners that have some waiting
	running map[int]int
	queued  int // waiting, or taken and not begun
	closed  bool
}

func newQueue(workers int) *queue {
	q := &queue{share: max(1, workers-1), waiting: map[int][]maildir.Firing{}, running: map[int]int{}}
	q.change = sync.NewCond(&q.mu)
	return q
}

// enqueue adds a firing when there is room; false when ctx ends first.
func (q *queue) enqueue(ctx context.Context, f maildir.Firing) bool {
	stop := context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.change.Broadcast()
	})
	defer stop()
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.queued >= maxQueued && ctx.Err() == nil {
		q.change.Wait()
	}
	if ctx.Err() != nil {
		return false
	}
	if len(q.waiting[f.Owner]) == 0 {
		q.turns = append(q.turns, f.Owner)
	}
	q.waiting[f.Owner] = append(q.waiting[f.Owner], f)
	q.queued++
	q.change.Broadcast()
	return true
}

// dequeue waits for a firing; false when the queue is closed. The taker calls begun once it is
// decided, and done at the end.
func (q *queue) dequeue() (maildir.Firing, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.closed {
			return maildir.Firing{}, false
		}
		at := slices.IndexFunc(q.turns, func(owner int) bool { return q.running[owner] < q.share })
		if at < 0 {
			q.change.Wait()
			continue
		}
		owner := q.turns[at]
		q.turns = slices.Delete(q.turns, at, at+1)
		f := q.waiting[owner][0]
		if q.waiting[owner] = q.waiting[owner][1:]; len(q.waiting[owner]) > 0 {
			q.turns = append(q.turns, owner)
		} else {
			delete(q.waiting, owner)
		}
		q.running[owner]++
		return f, true
	}
}

// begun says that a firing that was taken is decided.
func (q *queue) begun() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queued--
	q.change.Broadcast()
}

// done says that a worker is free again.
func (q *queue) done(owner int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running[owner]--; q.running[owner] == 0 {
		delete(q.running, owner)
	}
	q.change.Broadcast()
}

// empty reports whether everything that was put has been decided.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queued == 0
}

// idle reports whether nothing waits and nothing runs.
func (q *queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queued == 0 && len(q.running) == 0
}

// close ends take; what waits stays.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.change.Broadcast()
}
