package storedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailtree/maildir/refusal"
)

// TestHeld checks that Held writes nothing to the store, so that server.lock still contains the last owner.
func TestHeld(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := filepath.Join(root, lockFile)
	if err := os.WriteFile(file, []byte("4194305\n"), 0o600); err != nil { // above any PID on Linux
		t.Fatal(err)
	}
	before, err := os.Stat(file)
	if err != nil || Held(root) {
		t.Fatalf("nobody should hold the lock: %v", err)
	}
	if after, err := os.Stat(file); err != nil || Holder(root) != "4194305" || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the lock file now contains %s, %v", Holder(root), err)
	}
	l, err := Take(root)
	if err != nil || !Held(root) || Holder(root) != strconv.Itoa(os.Getpid()) {
		t.Errorf("taken: %v, held by %s", err, Holder(root))
	}
	if err := l.Release(); err != nil || Held(root) {
		t.Errorf("released: %v", err)
	}
}

// TestTakeAfterKill checks that Take waits if a child process briefly holds the lock of a server that was killed just
// after forking the child.
func TestTakeAfterKill(t *testing.T) {
	t.Parallel()
	const dead = 4194305 // above any PID on Linux
	for _, pid := range []int{dead, os.Getpid()} {
		root := t.TempDir()
		held, err := os.Create(filepath.Join(root, lockFile))
		if err == nil {
			fmt.Fprintln(held, pid)
			err = unix.Flock(int(held.Fd()), unix.LOCK_EX)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(50*time.Millisecond, func() { held.Close() })
		l, err := Take(root)
		if pid != dead {
			if !errors.Is(err, refusal.ErrConflict) {
				t.Errorf("the lock was taken from a running process: %v", err)
			}
		} else if err != nil {
			t.Error(err)
		} else if err := l.Release(); err != nil {
			t.Error(err)
		}
	}
}
