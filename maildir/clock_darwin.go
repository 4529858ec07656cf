package maildir

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot is the time since the machine was started, nil where there is no such clock. This one goes on while the
// machine sleeps, as a lease does; Go's monotonic time does not (golang.org/issue/36141).
func sinceBoot() func() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return nil
	}
	return func() time.Duration {
		var t unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it was there at the start
		return time.Duration(t.Nano())
	}
}
