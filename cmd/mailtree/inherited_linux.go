package main

import (
	"math"

	"golang.org/x/sys/unix"
)

// keepInherited keeps the descriptors that whoever started this program left open, a lock or a
// secret of theirs, from the programs that this one starts: hooks of other users among them.
func keepInherited() {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	for fd := 3; fd < 1024; fd++ { // before Linux 5.11
		unix.CloseOnExec(fd)
	}
}
