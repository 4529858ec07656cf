package indexer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const immutable = 0x10 // FS_IMMUTABLE_FL in linux/fs.h

// TestOpenReadOnly checks that Open immediately refuses an index that can be read but not written, and does not
// remove it.
func TestOpenReadOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "index.sqlite3")
	x, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags|immutable)
	}
	if err != nil {
		t.Skipf("not done here: files cannot be made immutable: %v", err)
	}
	defer unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags)
	if x, err := Open(context.Background(), Config{Path: path}); !errors.Is(err, syscall.EROFS) {
		if err == nil {
			x.Close()
		}
		t.Errorf("opened with %v, want EROFS", err)
	}
}
