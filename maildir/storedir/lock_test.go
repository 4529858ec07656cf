package storedir

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// TestHeld: asking whether somebody owns the store writes nothing into it: server.lock goes on
// naming the last owner.
func TestHeld(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := filepath.Join(root, lockFile)
	if err := os.WriteFile(file, []byte("4194305\n"), 0o600); err != nil { // above any process number of Linux
		t.Fatal(err)
	}
	before, err := os.Stat(file)
	if err != nil || Held(root) {
		t.Fatalf("nobody holds it: %v", err)
	}
	if after, err := os.Stat(file); err != nil || Holder(root) != "4194305" || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("it names %s now, %v", Holder(root), err)
	}
	l, err := Take(root)
	if err != nil || !Held(root) || Holder(root) != strconv.Itoa(os.Getpid()) {
		t.Errorf("taken: %v, held by %s", err, Holder(root))
	}
	if err := l.Release(); err != nil || Held(root) {
		t.Errorf("released: %v", err)
	}
}
