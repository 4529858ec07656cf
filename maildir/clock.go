package maildir

import (
	"sync"
	"time"
)

// clock knows how far the wall clock has been set while the process ran: a lease goes on as long as was promised,
// whatever somebody does to the clock. It compares what the wall clock went on by with the time that passed, asleep or
// not. A small difference is a correction, as time servers make them, and is followed; a large one is a jump.
// Spec: 3 Claim; RELIABILITY "What must hold". Safe for concurrent use.
type clock struct {
	now     func() time.Time     // the wall clock
	elapsed func() time.Duration // the time that passed

	mu     sync.Mutex
	wall   time.Time // when it was last read
	passed time.Duration
	jumped time.Duration // all jumps since the start
}

// What is no jump: a step of a few seconds, and half again as much as a kernel slews (500 millionths), twice over.
const (
	smallStep = 5 * time.Second
	slewPart  = 1000 // of the time since the clock was last read
)

// newClock makes the clock of a store. Where the wall clock is the caller's own and elapsed is not given, the time that
// passed is what that clock says: it never jumps.
func newClock(now func() time.Time, elapsed func() time.Duration) *clock {
	if now == nil {
		now = time.Now
		if elapsed == nil {
			elapsed = sinceBoot()
		}
	}
	if elapsed == nil {
		from := now()
		elapsed = func() time.Duration { return now().Sub(from) }
	}
	return &clock{now: now, elapsed: elapsed, wall: now().Round(0), passed: elapsed()}
}

// read returns the time by the wall clock, and by how much it has jumped since the start.
func (c *clock) read() (wall time.Time, jumped time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall = c.now().Round(0) // without the reading that no setting moves
	passed := c.elapsed()
	since := passed - c.passed
	if d := wall.Sub(c.wall) - since; d.Abs() > smallStep+since/slewPart {
		c.jumped += d
	}
	c.wall, c.passed = wall, passed
	return wall, c.jumped
}
