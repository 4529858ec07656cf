package watcher

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOpenFolder checks that openFolder does not follow links anywhere in the path and does not block on a FIFO.
func TestOpenFolder(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	mkdir(t, filepath.Join(top, "a/b/c"))
	for link, target := range map[string]string{"out": "/", "a/up": "..", "a/side": "b"} {
		if err := os.Symlink(target, filepath.Join(top, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(top, "a/fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.Open(top)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for rel, want := range map[string]bool{
		".": true, "a": true, "a/b/c": true,
		"out": false, "out/etc": false, "a/up": false, "a/up/a": false, "a/side/c": false, "a/fifo": false, "none": false,
	} {
		dir, err := openFolder(root, rel)
		if (err == nil) != want || (err != nil && !absent(err)) {
			t.Errorf("%s: %v", rel, err)
		}
		if err == nil {
			_ = dir.Close()
		}
	}
}
