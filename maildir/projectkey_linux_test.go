package maildir_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/trap"
	"mailtree/maildir"
)

func gitRun(t testing.TB, args ...string) {
	t.Helper()
	args = append([]string{"-c", "user.name=x", "-c", "user.email=x@x"}, args...)
	if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", args, out)
	}
}

// TestKeyOfLinkedLater checks that a key's meaning changes when its folder becomes a linked worktree. The change must
// take effect when the next project is opened, or after a few seconds at the latest.
func TestKeyOfLinkedLater(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir()) // resolves symbolic links, as Git does
	if err != nil {
		t.Fatal(err)
	}
	clock := newHandClock()
	s := storetest.Open(t, storetest.Config{NoWatcher: true, Now: clock.now})
	main, one, two := filepath.Join(dir, "main"), filepath.Join(dir, "one"), filepath.Join(dir, "two")
	means := func(key, want string) {
		t.Helper()
		p, err := s.Project(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if p.HumanKey() != want {
			t.Errorf("%s means %s, want %s", key, p.HumanKey(), want)
		}
	}
	for _, key := range []string{one, two} {
		if _, err := s.EnsureProject(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		means(key, key)
	}
	gitRun(t, "init", "-q", main)
	gitRun(t, "-C", main, "commit", "-q", "--allow-empty", "-m", "x")
	gitRun(t, "-C", main, "worktree", "add", "-q", one)
	means(one, one)
	if _, err := s.EnsureProject(t.Context(), main); err != nil {
		t.Fatal(err)
	}
	means(one, main)
	means(two, two)
	gitRun(t, "-C", main, "worktree", "add", "-q", two)
	clock.forward(5 * time.Second)
	means(two, main)
}

// TestKnownKeyLooksAtNoFile checks that the store does not read a code base again if it has just resolved the code
// base's key. If the disk that contains the code base fails, the store must not notice the failure until keyFresh has
// passed.
func TestKnownKeyLooksAtNoFile(t *testing.T) {
	t.Parallel()
	clock := newHandClock()
	s := storetest.Open(t, storetest.Config{NoWatcher: true, Now: clock.now})
	key := t.TempDir()
	if _, err := s.EnsureProject(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Project(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	trap.Unreadable(t, filepath.Join(key, ".git"))
	if _, err := s.Project(t.Context(), key); err != nil {
		t.Errorf("the key was looked up again: %v", err)
	}
	clock.forward(5 * time.Second)
	if _, err := s.Project(t.Context(), key); !errors.Is(err, maildir.ErrUnavailable) {
		t.Errorf("the key was not looked up again: %v", err)
	}
}

// BenchmarkProjectKey measures how long it takes to find the project of a folder five levels below the top of a working
// tree. Every tool call does this.
func BenchmarkProjectKey(b *testing.B) {
	top := b.TempDir()
	gitRun(b, "init", "-q", top)
	key := filepath.Join(top, "one/two/three/four/five")
	if err := os.MkdirAll(key, 0o700); err != nil {
		b.Fatal(err)
	}
	s := storetest.Open(b, storetest.Config{NoWatcher: true})
	if _, err := s.EnsureProject(b.Context(), key); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Project(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
}
