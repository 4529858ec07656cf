package refusal

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
)

// Disk returns the refusal for a write that failed with err. The refusal says what happened, without a path. If err is
// a refusal, a context's error or nil, Disk returns err itself.
func Disk(err error) error {
	var said *Error
	if err == nil || errors.As(err, &said) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{What: NothingWritten, Why: DiskFault(err), Err: err}
}

// Unsure returns the refusal for a write that failed with err and could not be undone, because the disk has become
// read-only or unavailable.
func Unsure(err error) error {
	return &Error{What: WriteUnsure, Why: DiskFault(err), Err: err}
}

// DiskFault returns one clause, without a path, that says why a write failed.
func DiskFault(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "the disk is full"
	case errors.Is(err, syscall.EROFS):
		return "the disk is read-only"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "too many files are open"
	case errors.Is(err, syscall.EIO):
		return "the disk reported an I/O error"
	case errors.Is(err, fs.ErrPermission):
		return "the server does not have permission to write to the store"
	}
	return "the store could not be written"
}
