package maildir

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"mailtree/maildir/refusal"
)

// diskError refuses for a failed write: it says what happened, and no path.
func diskError(err error) error {
	var said *Error
	if err == nil || errors.As(err, &said) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{What: refusal.NothingWritten, Why: diskFault(err), Err: err}
}

// unsureError refuses for a failed write that could not be taken back either: a disk that has become read-only, or is gone.
func unsureError(err error) error {
	return &Error{What: refusal.WriteUnsure, Why: diskFault(err), Err: err}
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
