package writer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUndoOfUnreadable checks that Undo fails if it cannot determine whether a file is the operation's own, so that
// the journal keeps the operation.
func TestUndoOfUnreadable(t *testing.T) {
	t.Parallel()
	c := crash(t)
	c.must(c.c.Publish(c.ws[0]))
	c.tree.Fail = func(string) error { return unix.EMFILE } // files cannot be opened, but can be renamed
	if err := c.c.Undo(c.ws[0]); !errors.Is(err, unix.EMFILE) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(c.tree.Dir(), c.ws[0].Path)); err != nil {
		t.Error(err)
	}
}
