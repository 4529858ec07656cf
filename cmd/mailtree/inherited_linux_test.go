package main

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestKeepInherited checks that this program does not pass inherited descriptors on to the programs that it starts.
func TestKeepInherited(t *testing.T) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	keepInherited()
	for _, fd := range fds {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d is inherited: %#x %v", fd, flags, err)
		}
	}
}
