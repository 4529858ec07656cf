package main

import (
	"math"

	"golang.org/x/sys/unix"
)

// keepInherited marks the descriptors that the parent process left open, such as a lock or a secret
// of its own, as not inheritable: the programs that this one starts, hooks of other users among
// them, do not get them.
func keepInherited() {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	for fd := 3; fd < 1024; fd++ { // before Linux 5.11
		unix.CloseOnExec(fd)
	}
}
