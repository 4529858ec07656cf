package storedir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mailtree/maildir/format"
)

// TestProjectNames checks that a project whose tree is a symbolic link is not treated as one of the store's projects,
// and that files are not read through the link.
func TestProjectNames(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := errors.Join(
		makeProject(root, "real", "/home/me/real"),
		os.MkdirAll(filepath.Dir(Repo(root, "linked")), 0o700),
		os.Symlink(Repo(root, "real"), Repo(root, "linked")),
	); err != nil {
		t.Fatal(err)
	}
	all, err := ProjectNames(root)
	if err != nil || len(all) != 1 || all[0].Slug != "real" || all[0].HumanKey != "/home/me/real" {
		t.Errorf("got %v, %v", all, err)
	}
}

// BenchmarkProjectNames measures how long it takes to read the names of 1,000 projects. This happens at each commit in
// a working tree.
func BenchmarkProjectNames(b *testing.B) {
	root := b.TempDir()
	for i := range 1000 {
		human := fmt.Sprintf("/home/me/code%d", i)
		if err := makeProject(root, format.Slug(human), human); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if all, err := ProjectNames(root); err != nil || len(all) != 1000 {
			b.Fatal(len(all), err)
		}
	}
}

// makeProject writes the files that name a project.
func makeProject(root, slug, human string) error {
	dir := Repo(root, slug)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, format.ProjectFile), format.FormatProject(human, slug, time.Now()), 0o600)
}
