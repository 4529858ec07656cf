package storedir

import (
	"path/filepath"
	"testing"

	"mailtree/fixtures/trap"
	"mailtree/maildir/refusal"
)

// TestKeyNotReadable: where the .git of a work tree cannot be read because of the machine, nobody
// can tell which project a path in it means; that is not "no project".
func TestKeyNotReadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trap.Unreadable(t, filepath.Join(dir, ".git"))
	r := Resolver{Root: t.TempDir(), Names: func() ([]ProjectName, error) { return nil, nil }}
	if _, _, err := r.ResolveKey(dir); refusal.Code(err) != "unavailable" {
		t.Errorf("got %v", err)
	}
}
