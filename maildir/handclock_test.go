package maildir_test

import (
	"sync/atomic"
	"time"
)

// handClock is a clock that only the test moves forward.
type handClock struct{ at atomic.Int64 }

func newHandClock() *handClock {
	c := &handClock{}
	c.at.Store(time.Now().UnixMicro())
	return c
}

func (c *handClock) now() time.Time           { return time.UnixMicro(c.at.Load()) }
func (c *handClock) forward(by time.Duration) { c.at.Add(by.Microseconds()) }
