package storedir

import (
	"os"
	"path/filepath"
	"testing"
)

// TestReadme checks that a server start writes the README if it is missing or from another version, and that it does
// not touch anything that is not a regular file.
func TestReadme(t *testing.T) {
	root := t.TempDir()
	name := filepath.Join(root, "README.md")
	for _, old := range []string{"", "from another version", string(readme) + "more", string(readme)} {
		if old != "" {
			if err := os.WriteFile(name, []byte(old), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before, _ := os.Lstat(name)
		if err := KeepReadme(root); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(name); err != nil || string(data) != string(readme) {
			t.Errorf("after %.20q, the file contains %.20q, %v", old, data, err)
		}
		if after, err := os.Lstat(name); old == string(readme) && (err != nil || !os.SameFile(before, after)) {
			t.Error("a correct file was written again")
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/dev/null", name); err != nil {
		t.Fatal(err)
	}
	if err := KeepReadme(root); err != nil {
		t.Error(err)
	}
	if to, err := os.Readlink(name); err != nil || to != "/dev/null" {
		t.Errorf("the link is %q, %v", to, err)
	}
}
