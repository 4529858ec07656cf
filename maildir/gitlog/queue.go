package gitlog

import (
	"maps"
	"slices"
	"time"

	"mailtree/maildir/writer"
)

// queue contains the operations and edits that are waiting to be committed. It is guarded by Log.mu.
type queue struct {
	records   []record
	recorded  uint64 // total number of records that have been added
	finished  uint64 // total number of records that have been committed
	firstOp   time.Time
	edits     map[string]struct{}
	flight    map[string]struct{} // edits that are being committed
	cut       bool                // the last commit of edits left out paths beyond mostEdits
	firstEdit time.Time
	lastEdit  time.Time
	next      time.Time // do not commit before this time, to limit the load
	retry     time.Time // do not commit before this time, because a commit failed
	look      time.Time // when to check that our last commits were not undone; zero if no check is due
	failures  int
	held      int // total size, in bytes, of the contents in the records
}

type record struct {
	ops  []writer.Op
	done func()
	base hash // the newest commit that was known when the record was added
	held int  // total size, in bytes, of the contents in the operations
}

// maxHeld is the maximum total size, in bytes, of the contents in the queue. The queue may grow, for example, during a
// long merge. Above that size, the queue drops the contents, and commits use the files on disk instead.
const maxHeld = 32 << 20

// maxOps and maxPaths limit the size of a round, so that a long merge is not committed in a single round.
const (
	maxOps   = 5000
	maxPaths = 50000
)

func (q *queue) record(ops []writer.Op, done func(), base hash, now time.Time) {
	if len(q.records) == 0 {
		q.firstOp = now
	}
	held := contents(ops)
	if held > maxHeld-q.held {
		ops, held = slices.Clone(ops), 0
		for i := range ops {
			ops[i].Written = nil
		}
	}
	q.held += held
	q.records = append(q.records, record{ops, done, base, held})
	q.recorded++
}

// contents returns the total size, in bytes, of the contents that operations wrote.
func contents(ops []writer.Op) (n int) {
	for _, op := range ops {
		for _, p := range op.Paths {
			n += len(op.Written[p].Data)
		}
	}
	return n
}

func (q *queue) edited(paths []string, now time.Time) {
	for _, p := range paths {
		if len(q.edits) == 0 {
			q.firstEdit = now
		}
		q.edits[p] = struct{}{}
		q.lastEdit = now
	}
}

// waitingEdits returns the number of edits that have not been committed yet.
func (q *queue) waitingEdits() int { return len(q.edits) + len(q.flight) }

func (q *queue) pending() int {
	n := q.waitingEdits()
	for _, r := range q.records {
		n += len(r.ops)
	}
	return n
}

// nextRecords returns the records for the next commit. It does not remove them from the queue.
func (q *queue) nextRecords() []record {
	ops, paths := 0, 0
	for n, r := range q.records {
		ops += len(r.ops)
		for _, op := range r.ops {
			paths += len(op.Paths)
		}
		if n > 0 && (ops > maxOps || paths > maxPaths) {
			return q.records[:n:n]
		}
	}
	return slices.Clip(q.records)
}

// pop removes the first n records.
func (q *queue) pop(n int, now time.Time) {
	for _, r := range q.records[:n] {
		q.held -= r.held
	}
	clear(q.records[:n])
	q.records = q.records[n:]
	q.finished += uint64(n)
	q.firstOp = now
}

// due returns the time at which the next commit is due. The result pending is false if nothing is waiting.
func (q *queue) due(cfg Config) (at time.Time, pending bool) {
	take := func(t time.Time) {
		if !pending || t.Before(at) {
			at, pending = t, true
		}
	}
	if len(q.records) > 0 {
		take(q.firstOp.Add(cfg.Delay))
	}
	if len(q.edits) > 0 {
		take(q.restUntil(cfg))
	}
	if !q.look.IsZero() {
		take(q.look)
	}
	for _, t := range []time.Time{q.next, q.retry} {
		if at.Before(t) {
			at = t
		}
	}
	return at, pending
}

// restUntil returns the time at which edits are due. They are due when nothing has changed for cfg.Quiet, when they
// have been waiting for cfg.Longest, or immediately if there are enough for a full commit.
func (q *queue) restUntil(cfg Config) time.Time {
	if len(q.edits) >= mostEdits {
		return q.firstEdit
	}
	rest, latest := q.lastEdit.Add(cfg.Quiet), q.firstEdit.Add(cfg.Longest)
	if latest.Before(rest) {
		return latest
	}
	return rest
}

func (q *queue) editsDue(cfg Config, now time.Time) bool {
	return len(q.edits) > 0 && !now.Before(q.restUntil(cfg))
}

// startEdits returns the edits for the next commit: the first paths in sorted order. They are in flight until endEdits
// is called.
func (q *queue) startEdits(now time.Time) []string {
	paths := slices.Sorted(maps.Keys(q.edits))
	paths, later := paths[:min(len(paths), mostEdits)], paths[min(len(paths), mostEdits):]
	q.flight, q.edits, q.cut = q.edits, map[string]struct{}{}, false
	q.firstEdit = now
	for _, path := range later {
		delete(q.flight, path)
		q.edits[path] = struct{}{}
	}
	return paths
}

// leaveRest puts edits beyond the limit of a commit back into the queue.
func (q *queue) leaveRest(paths []string) {
	for _, path := range paths {
		q.edits[path] = struct{}{}
	}
	q.cut = len(paths) > 0
}

// ofOperations returns the paths that the waiting operations list.
func (q *queue) ofOperations() map[string]struct{} {
	all := map[string]struct{}{}
	for _, r := range q.records {
		for _, op := range r.ops {
			for _, p := range op.Paths {
				all[p] = struct{}{}
			}
		}
	}
	return all
}

// putOff delays an edit, even if it has already been waiting for a long time.
func (q *queue) putOff(path string, now time.Time) {
	q.edits[path] = struct{}{}
	q.firstEdit, q.lastEdit = now, now
}

// endEdits ends the commit of the edits in flight. If they were not committed, it puts them back into the queue.
func (q *queue) endEdits(committed bool, now time.Time) {
	if !committed {
		if len(q.edits) == 0 {
			q.lastEdit = now
		}
		for p := range q.flight {
			q.edits[p] = struct{}{}
		}
	}
	q.flight = nil
}

const (
	shortestRetry = 100 * time.Millisecond
	longestRetry  = 5 * time.Second
	longestBehind = 3500 * time.Millisecond // maximum time between the ends of consecutive rounds of less than 2 s
)

func (q *queue) failed(now time.Time) {
	q.retry = now.Add(min(shortestRetry<<min(q.failures, 10), longestRetry))
	q.failures++
}

// succeeded records that a round has succeeded, and how long it took. It delays the next round so that rounds take up a
// tenth of the time. The delay is shorter if the next round would otherwise end more than longestBehind after this
// round.
func (q *queue) succeeded(now time.Time, took, delay time.Duration) {
	q.retry, q.failures = time.Time{}, 0
	q.next = now.Add(max(3*delay, took/2, min(9*took, longestBehind-2*took)))
}
