package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Fault says what a failed file call tells about the file that it was made for. Whoever asks "is it
// there?" asks FaultOf: only FaultGone means no.
type Fault uint8

const (
	NoFault      Fault = iota // there was no error
	FaultGone                 // nothing is at the path, or it leads through a symbolic link
	FaultFile                 // the file's own: it may not be opened, or is not what belongs there. It hides only itself
	FaultMachine              // the machine's or the process's, for now: it tells nothing about the file. Ask again later
)

// opFstat names a look at what is open already. Where it fails, that tells nothing about the file: it could
// be opened.
const opFstat = "fstat"

// FaultOf classifies the error of a file call. An errno that it does not know is the machine's
// fault: to take a file for gone because of it would lose mail, to try again costs a moment.
func FaultOf(err error) Fault {
	if err == nil {
		return NoFault
	}
	var no syscall.Errno
	var bad *FormatError
	var call *fs.PathError
	switch isErrno := errors.As(err, &no); {
	case isErrno && errors.As(err, &call) && call.Op == opFstat:
		return FaultMachine
	case isErrno:
		return faultOfErrno(no)
	case errors.Is(err, fs.ErrNotExist):
		return FaultGone
	case errors.As(err, &bad), errors.Is(err, fs.ErrPermission):
		return FaultFile
	}
	return FaultMachine
}

func faultOfErrno(no syscall.Errno) Fault {
	switch no {
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP:
		return FaultGone
	case syscall.EACCES, syscall.EPERM, syscall.ENAMETOOLONG, syscall.EISDIR, syscall.EINVAL, syscall.EXDEV,
		syscall.ENXIO, syscall.ENODEV, syscall.EOPNOTSUPP, syscall.EFBIG, syscall.EOVERFLOW, syscall.EILSEQ:
		return FaultFile
	}
	return FaultMachine
}

// FormatError says why a file of the tree is not valid: it becomes a row of problems.
// See docs/tree.md, "Problems".
type FormatError struct {
	Line   int // 1-based line of the file; 0 where a line makes no sense
	Reason string
}

// Error returns "line N: reason".
func (e *FormatError) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
}

// MachineFault is err where that is the machine's fault, else nil: nothing that counts is there.
func MachineFault(err error) error {
	if FaultOf(err) == FaultMachine {
		return err
	}
	return nil
}

// SizeError says that a file has more bytes than a read may take. It is a FormatError.
type SizeError struct{ Size, Limit int64 }

// Error returns "N bytes, over the limit of N".
func (e *SizeError) Error() string {
	return fmt.Sprintf("%d bytes, over the limit of %d", e.Size, e.Limit)
}

// Unwrap returns the FormatError that it is.
func (e *SizeError) Unwrap() error { return &FormatError{0, e.Error()} }

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
