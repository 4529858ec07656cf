package tree

import (
	"os"
	"path/filepath"
	"testing"
)

// repoOf creates a project's tree with one file. The tree is not kept open.
func repoOf(t *testing.T) (tree *Tree, dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "repo")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("here"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := OpenNoLink(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	tree.Close()
	return tree, dir
}

// TestTreeAtRest checks that a tree keeps no descriptor open between calls, and can still be used.
func TestTreeAtRest(t *testing.T) {
	t.Parallel()
	tree, _ := repoOf(t)
	c := tree.Changer(0)
	w := &Write{Path: "messages/a.md", Data: []byte("a"), Sum: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"}
	for _, err := range []error{c.Stage(w, "1-0"), c.Publish(w), tree.Sync(nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if tree.users != 1 {
		t.Errorf("%d users while a group is in progress, want 1", tree.users)
	}
	c.Close()
	data, _, err := tree.Read(w.Path, 10)
	if err != nil || string(data) != "a" {
		t.Errorf("read %q, %v", data, err)
	}
	if tree.users != 0 {
		t.Errorf("%d users of an idle tree", tree.users)
	}
}

// TestTreeReplacedByLink checks that if the tree's folder is replaced by a link, nothing is read through the link.
func TestTreeReplacedByLink(t *testing.T) {
	t.Parallel()
	tree, dir := repoOf(t)
	if err := os.Rename(dir, dir+"2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir+"2", dir); err != nil {
		t.Fatal(err)
	}
	if data, _, err := tree.Read("file", 10); FaultOf(err) != FaultGone {
		t.Errorf("read %q, %v", data, err)
	}
}

// TestUndoMoved checks that Undo also removes a file if a user has moved the file's folder, even if the user has then
// moved the file back to its old path.
func TestUndoMoved(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{false, true} {
		tree, dir := repoOf(t)
		c := tree.Changer(0)
		defer c.Close()
		w := &Write{Path: "messages/a.md", Data: []byte("a"), Sum: SHA256([]byte("a"))}
		for _, err := range []error{
			c.Stage(w, "1-0"), c.Publish(w), os.Rename(filepath.Join(dir, "messages"), filepath.Join(dir, "moved")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if back {
			if err := os.Mkdir(filepath.Join(dir, "messages"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, "moved", "a.md"), filepath.Join(dir, "messages", "a.md")); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Undo(w); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*", "*.md")); len(left) > 0 {
			t.Errorf("moved back %t: the undo left %q", back, left)
		}
	}
}
