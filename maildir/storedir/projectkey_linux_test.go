package storedir

import (
	"path/filepath"
	"testing"

	"mailtree/fixtures/trap"
	"mailtree/maildir/refusal"
)

// TestKeyNotReadable: the .git of a work tree cannot be read because of a fault of the machine, so the project of a
// path in the work tree is unknown. That must not count as "no project".
func TestKeyNotReadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trap.Unreadable(t, filepath.Join(dir, ".git"))
	r := Resolver{Root: t.TempDir(), Names: func() ([]ProjectName, error) { return nil, nil }}
	if _, _, err := r.ResolveKey(dir); refusal.Code(err) != "unavailable" {
		t.Errorf("got %v", err)
	}
}
