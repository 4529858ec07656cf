package spool

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// withoutName creates a nameless file. If the file system does not support such files, it returns
// errors.ErrUnsupported.
func withoutName(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, unix.O_TMPFILE|os.O_RDWR, 0o600)
	if errors.Is(err, syscall.EISDIR) { // the kernel does not support O_TMPFILE
		return nil, errors.ErrUnsupported
	}
	return f, err
}
