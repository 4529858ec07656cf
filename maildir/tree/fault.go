package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"unicode/utf8"
)

// Fault classifies an error from a file operation. Only FaultGone means that the file does not exist.
type Fault uint8

const (
	NoFault      Fault = iota // there was no error
	FaultGone                 // there is nothing at the path, or the path leads through a symbolic link
	FaultFile                 // the file itself is the cause: no permission to open it, or not a regular file
	FaultMachine              // the machine or the process is the cause, as with EIO or EMFILE; try again later
)

// opFstat is the Op in the error of a stat call on an open file. Such an error does not mean that anything is wrong
// with the file, because the file could be opened.
const opFstat = "fstat"

// FaultOf classifies the error of a file operation. An unknown errno is treated as a machine fault (FaultMachine).
// Treating the file as gone could lose mail, whereas a retry costs little.
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

// FormatError says why a file in the tree is invalid. Such an error is stored as a row in the problems table. See
// docs/reference/tree.md, "Problems".
type FormatError struct {
	Line   int // line in the file, starting at 1; 0 if the error concerns no particular line
	Reason string
}

// Error returns "line N: reason".
func (e *FormatError) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
}

// MachineFault returns err if it is a machine fault, and nil otherwise.
func MachineFault(err error) error {
	if FaultOf(err) == FaultMachine {
		return err
	}
	return nil
}

// SizeError says that a file is larger than the limit for reading it. Size and Limit are in bytes. It wraps a
// FormatError.
type SizeError struct{ Size, Limit int64 }

// Error returns "N bytes, over the limit of N".
func (e *SizeError) Error() string {
	return fmt.Sprintf("%d bytes, over the limit of %d", e.Size, e.Limit)
}

// Unwrap returns the error as a FormatError.
func (e *SizeError) Unwrap() error { return &FormatError{0, e.Error()} }

// PlainFileError says in plain English why a file cannot be read. The text does not contain the path.
func PlainFileError(err error) string {
	var bad *FormatError
	if errors.As(err, &bad) {
		return bad.Reason
	}
	if os.IsPermission(err) {
		return "permission denied"
	}
	return "read error"
}

// PlainFault is like PlainFileError, but also describes machine faults.
func PlainFault(err error) string {
	var no syscall.Errno
	if FaultOf(err) == FaultMachine && errors.As(err, &no) {
		return no.Error() + ". Try again"
	}
	return PlainFileError(err)
}

// InvalidUTF8 returns the offset of the first byte in data that is not valid UTF-8, or len(data) if there is none.
func InvalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}
