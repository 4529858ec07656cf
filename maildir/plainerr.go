package maildir

import (
	"errors"
	"os"
	"syscall"

	"mailtree/maildir/tree"
)

// plainFileError says what is wrong with a file that cannot be read, without its path.
func plainFileError(err error) string {
	var bad *tree.FormatError
	if errors.As(err, &bad) {
		return bad.Reason
	}
	if os.IsPermission(err) {
		return "permission denied"
	}
	return "it cannot be read"
}

// plainFault says why a file cannot be read, without its path.
func plainFault(err error) string {
	var no syscall.Errno
	if tree.FaultOf(err) == tree.FaultMachine && errors.As(err, &no) {
		return no.Error() + ". Try again"
	}
	return plainFileError(err)
}
