package watcher

import (
	"os"
	"path/filepath"
	"testing"
)

// TestWritten checks that written returns true for a regular file once no process has it open for writing, and never
// for a link or another kind of file.
func TestWritten(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	name := filepath.Join(root, "f")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if written(root, "f") {
		t.Error("written is true while the file is open")
	}
	r, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f.Close()
	if !written(root, "f") {
		t.Error("written is false after the file was closed, with a reader")
	}
	if f, err = os.OpenFile(name, os.O_RDWR, 0); err != nil { // the lease has been released
		t.Fatal(err)
	}
	f.Close()
	if err := os.Symlink(name, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if written(root, "link") || written(root, ".") || written(root, "none") {
		t.Error("written is true for a link, a folder or a missing file")
	}
}
