package tree

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFaultOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Fault
	}{
		{nil, NoFault},
		{fs.ErrNotExist, FaultGone}, {syscall.ENOENT, FaultGone}, {syscall.ENOTDIR, FaultGone}, {syscall.ELOOP, FaultGone},
		{behindLink(), FaultGone},
		{syscall.EACCES, FaultFile}, {syscall.EPERM, FaultFile}, {syscall.ENAMETOOLONG, FaultFile}, {syscall.ENXIO, FaultFile},
		{syscall.EISDIR, FaultFile}, {NotRegular(fs.ModeNamedPipe), FaultFile}, {&SizeError{2, 1}, FaultFile}, {fs.ErrPermission, FaultFile},
		{syscall.EMFILE, FaultMachine}, {syscall.ENFILE, FaultMachine}, {syscall.ENOMEM, FaultMachine}, {syscall.EIO, FaultMachine},
		{syscall.ESTALE, FaultMachine}, {syscall.EINTR, FaultMachine}, {syscall.Errno(9999), FaultMachine}, {io.ErrUnexpectedEOF, FaultMachine},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("look: %w", &fs.PathError{Op: "open", Path: "p", Err: err})
		}
		if got := FaultOf(err); got != c.want {
			t.Errorf("FaultOf(%v) = %d, want %d", c.err, got, c.want)
		}
	}
	for _, no := range []error{syscall.ENXIO, syscall.EACCES, syscall.ENOENT} { // the file was opened, so it exists
		if got := FaultOf(&fs.PathError{Op: opFstat, Path: "p", Err: no}); got != FaultMachine {
			t.Errorf("FaultOf(fstat: %v) = %d, want %d", no, got, FaultMachine)
		}
	}
}

// TestFaultOfTree checks how FaultOf classifies the errors that the tree itself returns.
func TestFaultOfTree(t *testing.T) {
	dir := t.TempDir()
	tree, err := Open(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "d"), 0o700), os.Symlink("d", filepath.Join(dir, "l")),
		os.WriteFile(filepath.Join(dir, "f"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]Fault{"missing": FaultGone, "f/x": FaultGone, "l/x": FaultGone, "d": FaultFile, "l": FaultFile, "f": NoFault} {
		if _, _, err := tree.Read(p, 10); FaultOf(err) != want {
			t.Errorf("Read(%s): %v is %d, want %d", p, err, FaultOf(err), want)
		}
	}
}
