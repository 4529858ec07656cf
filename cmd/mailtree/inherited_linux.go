package main

import (
	"math"

	"golang.org/x/sys/unix"
)

// keepInherited marks the descriptors that the parent process left open, such as a lock or a secret, as not
// inheritable. Programs that this process starts, including the hooks of other OS users, then do not inherit these
// descriptors.
func keepInherited() {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	for fd := 3; fd < 1024; fd++ { // fallback for Linux before 5.11
		unix.CloseOnExec(fd)
	}
}
