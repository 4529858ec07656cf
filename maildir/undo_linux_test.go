package maildir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// unreadable is the crashed tree where nothing can be read, as with too many open files, while names can be changed.
func (c *crashed) unreadable() *changer {
	t := &Tree{dir: c.tree.dir, maxFile: c.tree.maxFile, root: c.tree.root, users: 1, sys: system{fd: -1}}
	return &changer{t: t, held: true, folders: c.c.folders}
}

// TestUndoOfUnreadable: where it cannot be told whether a file is the operation's own, undoing it fails: it may be there, so the
// journal has to keep it.
func TestUndoOfUnreadable(t *testing.T) {
	t.Parallel()
	c := crash(t)
	c.must(c.c.publish(c.ws[0]))
	if err := c.unreadable().undo(c.ws[0]); !errors.Is(err, unix.EBADF) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(c.tree.dir, c.ws[0].path)); err != nil {
		t.Error(err)
	}
}
