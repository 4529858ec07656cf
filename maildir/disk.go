package maildir

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
)

// diskError words a failed write for the one who asked: what happened and what to do, no path.
func diskError(err error) error {
	var said *Error
	if err == nil || errors.As(err, &said) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{Kind: ErrUnavailable, Text: diskFault(err) + "; nothing was changed. See `mailtree doctor` and the server's log, then try again.", Err: err}
}

// unsureError words a failed write that could not be taken back either: a disk that has become read-only, or is gone.
func unsureError(err error) error {
	return &Error{Kind: ErrUnavailable, Text: diskFault(err) + ", and what was written could not be taken back: it may be done now, or after the server's next start. See `mailtree doctor` and the server's log, and look before you try again.", Err: err}
}

func diskFault(err error) string {
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
		return "permission was denied in the store"
	}
	return "the store could not be written"
}
