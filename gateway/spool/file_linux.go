package spool

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// withoutName creates a file without a name. It returns errors.ErrUnsupported on file systems that do not support
// such files.
func withoutName(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, unix.O_TMPFILE|os.O_RDWR, 0o600)
	if errors.Is(err, syscall.EISDIR) { // the kernel does not support the flag
		return nil, errors.ErrUnsupported
	}
	return f, err
}
