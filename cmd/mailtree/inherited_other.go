//go:build !linux

package main

import "golang.org/x/sys/unix"

// keepInherited marks the descriptors that the parent process left open as not inheritable.
func keepInherited() {
	for fd := 3; fd < 1024; fd++ {
		unix.CloseOnExec(fd)
	}
}
