package hook

import (
	"context"
	"slices"
	"sync"

	"mailtree/maildir/hook"
)

// maxQueued limits the number of queued firings, and thus memory usage. Further firings stay in the feed.
const maxQueued = 10_000

// queue contains the firings of all owners. It serves the owners in turn, and each owner's firings in order. No owner
// can occupy all workers, so one owner's slow hooks do not delay other owners' hooks. It is safe for concurrent use.
type queue struct {
	share int // maximum number of one owner's commands that run at the same time

	mu      sync.Mutex
	change  *sync.Cond
	waiting map[int][]hook.Firing // by owner
	turns   []int                 // owners with waiting firings
	running map[int]int
	queued  int // firings that are waiting, or that were dequeued but have not begun
	closed  bool
}

func newQueue(workers int) *queue {
	q := &queue{share: max(1, workers-1), waiting: map[int][]hook.Firing{}, running: map[int]int{}}
	q.change = sync.NewCond(&q.mu)
	return q
}

// enqueue adds a firing as soon as there is room. It returns false if ctx is done first.
func (q *queue) enqueue(ctx context.Context, f hook.Firing) bool {
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

// dequeue waits for a firing. It returns false if the queue is closed. The caller must call begun once it has decided
// whether to run the firing, and done when the firing has ended.
func (q *queue) dequeue() (hook.Firing, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.closed {
			return hook.Firing{}, false
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

// begun records that a worker has decided whether to run a firing.
func (q *queue) begun() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queued--
	q.change.Broadcast()
}

// done records that a firing has ended and its worker is free.
func (q *queue) done(owner int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running[owner]--; q.running[owner] == 0 {
		delete(q.running, owner)
	}
	q.change.Broadcast()
}

// empty reports whether no firing is waiting for a worker or for a decision.
func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queued == 0
}

// idle reports whether no firing is waiting or running.
func (q *queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queued == 0 && len(q.running) == 0
}

// close makes dequeue return false. Waiting firings stay in the queue.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.change.Broadcast()
}
