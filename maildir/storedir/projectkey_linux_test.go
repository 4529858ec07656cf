package storedir

import (
	"path/filepath"
	"testing"

	"mailtree/fixtures/trap"
	"mailtree/maildir/refusal"
)

// TestKeyNotReadable checks that a path's project is reported as unknown if a machine fault prevents reading the .git
// entry of the path's working tree. Such a fault must not be treated as "no project".
func TestKeyNotReadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trap.Unreadable(t, filepath.Join(dir, ".git"))
	r := NewResolver(t.TempDir(), Scope{})
	if _, err := r.ResolveKey(dir); refusal.Code(err) != "unavailable" {
		t.Errorf("got %v", err)
	}
}
