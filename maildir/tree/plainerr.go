package tree

import (
	"errors"
	"os"
	"syscall"
)

// PlainFileError says what is wrong with a file that cannot be read, without its path.
func PlainFileError(err error) string {
	var bad *FormatError
	if errors.As(err, &bad) {
		return bad.Reason
	}
	if os.IsPermission(err) {
		return "permission denied"
	}
	return "it cannot be read"
}

// PlainFault says why a file cannot be read, without its path.
func PlainFault(err error) string {
	var no syscall.Errno
	if FaultOf(err) == FaultMachine && errors.As(err, &no) {
		return no.Error() + ". Try again"
	}
	return PlainFileError(err)
}
