package watcher

import (
	"slices"
	"testing"
	"time"
)

// TestDeadlines checks the deadlines in docs/explanation/architecture.md, "From a save to the index", with a simulated
// clock.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	ms := func(n int) time.Time { return time.Unix(1000, 0).Add(time.Duration(n) * time.Millisecond) }
	type touch struct {
		at      int
		written bool
	}
	for name, test := range map[string]struct {
		touches []touch
		due     int
	}{
		"renamed":               {[]touch{{0, false}}, 3},
		"renamed twice":         {[]touch{{0, false}, {2, false}}, 5},
		"written":               {[]touch{{0, true}}, 30},
		"made, then written":    {[]touch{{0, false}, {1, true}}, 31},
		"written, then renamed": {[]touch{{0, true}, {1, false}}, 31},
		"written all the time":  {[]touch{{0, true}, {100, true}, {140, true}}, 150},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newWaiting(Config{}.withDefaults())
			for _, c := range test.touches {
				q.touch("p", ms(c.at), ms(c.at), c.written)
			}
			if b, next := q.takeDue(ms(test.due - 1)); len(b.Paths) != 0 || !next.Equal(ms(test.due)) {
				t.Errorf("before: %v, asks again at %v", b, next.Sub(ms(0)))
			}
			if b, _ := q.takeDue(ms(test.due)); !slices.Equal(b.Paths, []string{"p"}) || b.Scan {
				t.Errorf("when due: %v", b)
			}
		})
	}
}

// TestWake checks that dispatch is woken only for a deadline that is earlier than its current deadline.
func TestWake(t *testing.T) {
	t.Parallel()
	q, now := newWaiting(Config{}.withDefaults()), time.Now()
	woken := func() bool {
		select {
		case <-q.wake:
			return true
		default:
			return false
		}
	}
	q.touch("slow", now, now, true)
	if !woken() {
		t.Error("dispatch sleeps without a deadline and is not woken")
	}
	q.takeDue(now)
	q.touch("slower", now.Add(time.Millisecond), now.Add(time.Millisecond), true)
	if woken() {
		t.Error("woken for a later deadline")
	}
	q.touch("quick", now, now, false)
	if !woken() {
		t.Error("not woken for an earlier deadline")
	}
	q.takeDue(now)
	q.askScan()
	if !woken() {
		t.Error("not woken for a Scan")
	}
	if b, _ := q.takeDue(now); !b.Scan || len(b.Paths) != 0 {
		t.Errorf("a Scan must be due at once and must not include paths that are not due: %v", b)
	}
}

// TestClosed checks that a path that was written in place is due once its writer has closed the file. The queue must
// check this after 3 ms, and then at growing intervals.
func TestClosed(t *testing.T) {
	t.Parallel()
	ms := func(n int) time.Time { return time.Unix(1000, 0).Add(time.Duration(n) * time.Millisecond) }
	q := newWaiting(Config{}.withDefaults())
	closed, asked := false, 0
	q.closed = func(string) bool { asked++; return closed }
	q.touch("p", ms(0), ms(0), true)
	for _, step := range []struct{ at, next int }{{0, 3}, {3, 9}, {4, 9}, {9, 21}} {
		if b, next := q.takeDue(ms(step.at)); len(b.Paths) != 0 || !next.Equal(ms(step.next)) {
			t.Errorf("at %d: %v, asks again at %v", step.at, b, next.Sub(ms(0)))
		}
	}
	closed = true
	if b, _ := q.takeDue(ms(21)); !slices.Equal(b.Paths, []string{"p"}) || asked != 3 {
		t.Errorf("closed: %v, asked %d times", b, asked)
	}
}
