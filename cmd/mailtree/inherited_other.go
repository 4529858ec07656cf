//go:build !linux

package main

import "golang.org/x/sys/unix"

// keepInherited keeps the descriptors that whoever started this program left open from the programs
// that this one starts.
func keepInherited() {
	for fd := 3; fd < 1024; fd++ {
		unix.CloseOnExec(fd)
	}
}
