package storedir

import (
	"os"
	"path/filepath"
	"testing"

	"mailtree/maildir/refusal"
)

// TestKeyNotReadable: where the .git of a work tree cannot be read because of the machine, nobody
// can tell which project a path in it means; that is not "no project".
func TestKeyNotReadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink("/proc/self/mem", filepath.Join(dir, ".git")); err != nil { // reading it is EIO
		t.Fatal(err)
	}
	r := Resolver{Root: t.TempDir(), Names: func() ([]ProjectName, error) { return nil, nil }}
	if _, _, err := r.ResolveKey(dir); refusal.Code(err) != "unavailable" {
		t.Errorf("got %v", err)
	}
}
