package hook

import (
	"context"
	"errors"
	"testing"

	"mailtree/maildir/hook"
)

// TestTurns checks that the queue serves owners in turn and each owner's firings in order, and that no owner can
// occupy all workers.
func TestTurns(t *testing.T) {
	t.Parallel()
	q := newQueue(3)
	for _, f := range []hook.Firing{{Owner: 1, ID: "a"}, {Owner: 1, ID: "b"}, {Owner: 1, ID: "c"}, {Owner: 2, ID: "x"}} {
		if !q.enqueue(t.Context(), f) {
			t.Fatal("enqueue returned false")
		}
	}
	take := func(want string) {
		t.Helper()
		if f, ok := q.dequeue(); !ok || f.ID != want {
			t.Errorf("took %q, want %q", f.ID, want)
		}
		q.begun()
	}
	take("a")
	take("x")
	take("b")
	if q.empty() {
		t.Error("a firing is waiting, but the queue is empty")
	}
	q.done(1)
	take("c")
	if !q.empty() {
		t.Error("nothing is waiting, but the queue is not empty")
	}
	q.close()
	if _, ok := q.dequeue(); ok {
		t.Error("dequeue returned a firing from a closed queue")
	}
}

// TestRoom checks that enqueue waits until there is room or its context is done.
func TestRoom(t *testing.T) {
	t.Parallel()
	q := newQueue(1)
	for range maxQueued {
		q.enqueue(t.Context(), hook.Firing{})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	put := make(chan bool)
	go func() { put <- q.enqueue(ctx, hook.Firing{ID: "last"}) }()
	q.dequeue()
	q.begun()
	if !<-put {
		t.Error("enqueue returned false, although there was room")
	}
	go func() { put <- q.enqueue(ctx, hook.Firing{}) }()
	cancel(errors.New("end"))
	if <-put {
		t.Error("enqueue returned true, although there was no room")
	}
}
