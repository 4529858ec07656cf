package maildir_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir/format"
)

// TestGitIgnores checks that Git ignores exactly the files that are not part of the mail.
func TestGitIgnores(t *testing.T) {
	t.Parallel()
	dir := project(t, storetest.Config{}, "Ann").Dir()
	for _, name := range []string{
		"note.md", ".note.md.swp", ".note.md.swo", "note.md~", "note.swx", "4913", "4914", ".#note.md", "#note.md#", "#note.md", "note#",
		".obsidian/app.json", "~note.md", ".gitignore", ".gitattributes", "note.swp.md",
	} {
		path := "agents/Ann/outbox/" + name
		ignored := exec.Command("git", "-C", dir, "check-ignore", "-q", path).Run() == nil
		first, _, _ := strings.Cut(name, "/")
		if own := first == format.GitIgnore || first == format.GitAttributes; ignored != (format.Ignored(first) && !own) {
			t.Errorf("Git ignores %s: %v", path, ignored)
		}
	}
}

// TestGitFilesCompleted checks that the server adds lines that are missing from the Git files of a project created by
// an older version. The lines must be added once, before the user's lines, and the old file must be in the history.
func TestGitFilesCompleted(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "store")
	s := storetest.Open(t, storetest.Config{Root: root})
	p, err := s.EnsureProject(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(p.Dir(), format.GitAttributes)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	old := strings.Replace(string(whole), "*.archived merge=union\n", "", 1) + "*.archived merge=ours\n"
	if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "*.archived merge=union\n" + old
	for range 2 {
		s = storetest.Open(t, storetest.Config{Root: root})
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("the file is %q, want %q: %v", got, want, err)
		}
		s.Stop()
	}
	log, err := exec.Command("git", "-C", p.Dir(), "log", "--format=%s", "--", format.GitAttributes).Output()
	if got := strings.Split(strings.TrimSpace(string(log)), "\n"); err != nil || len(got) != 3 || !strings.HasPrefix(got[1], "edit") {
		t.Errorf("the history of the file is %q: %v", got, err)
	}
}
