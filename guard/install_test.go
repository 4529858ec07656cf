package guard

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"mailtree/maildir/refusal"
)

// newSite creates a code repository and a store with one project.
func newSite(t *testing.T) (Site, Setup) {
	t.Helper()
	dir := t.TempDir()
	code, store := filepath.Join(dir, "code"), filepath.Join(dir, "store")
	project := filepath.Join(store, "projects", "shop", "repo")
	if err := os.MkdirAll(project, 0o700); err != nil {
		t.Fatal(err)
	}
	about := `{"human_key": "/p/shop", "slug": "shop", "created": "2026-01-01T00:00:00Z"}`
	if err := os.WriteFile(filepath.Join(project, "project.json"), []byte(about), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	c := exec.Command("git", "init", "-q", code)
	c.Env = env
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return Site{Repo: code, Env: env}, Setup{Store: store, Project: "shop", Program: "/p/mailtree"}
}

// TestInstallsAtOnce checks that after concurrent runs of Install and Uninstall, there is exactly one copy of the
// earlier hook, and the guard's hooks are intact.
func TestInstallsAtOnce(t *testing.T) {
	at, s := newSite(t)
	hooks := filepath.Join(at.Repo, ".git", "hooks")
	if err := os.RemoveAll(hooks); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	const old = "#!/bin/sh\nexit 0 # of the user\n"
	if err := os.WriteFile(filepath.Join(hooks, PreCommit), []byte(old), 0o755); err != nil {
		t.Fatal(err)
	}
	install := func() error { _, err := Install(t.Context(), at, s); return err }
	uninstall := func() error { _, err := Uninstall(t.Context(), at); return err }
	for round := range 30 {
		all := []func() error{install, uninstall, install, uninstall}
		if round%3 == 0 {
			all = []func() error{install, install, install}
		}
		var wg sync.WaitGroup
		for _, do := range all {
			wg.Go(func() {
				if err := do(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		entries, err := os.ReadDir(hooks)
		if err != nil {
			t.Fatal(err)
		}
		places := 0
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(hooks, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			h, changed := parseHook(data)
			switch {
			case string(data) == old && strings.TrimSuffix(e.Name(), behind) == PreCommit:
				places++
			case h == nil || changed:
				t.Errorf("round %d: %s is left over: %q", round, e.Name(), data)
			}
		}
		if places != 1 {
			t.Fatalf("round %d: the earlier hook is in %d places: %v", round, places, entries)
		}
	}
}

// TestInstallWaits checks that Install waits while the hooks folder is locked, can be canceled while it waits, and
// continues once the lock is released.
func TestInstallWaits(t *testing.T) {
	at, s := newSite(t)
	r, err := openRepository(t.Context(), at.Repo, at.Env)
	if err != nil {
		t.Fatal(err)
	}
	f, err := makeHooks(r)
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	if err := f.lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := makeHooks(r)
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := other.lock(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ended := make(chan error)
	go func() { _, err := Install(t.Context(), at, s); ended <- err }()
	f.close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestTemporaryName checks that Install never writes through a link or a pipe that an attacker has created under a
// guessed name for the temporary file.
func TestTemporaryName(t *testing.T) {
	at, s := newSite(t)
	hooks := filepath.Join(at.Repo, ".git", "hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	victim := filepath.Join(hooks, "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(os.Getpid())
	if err := os.Symlink("victim", filepath.Join(hooks, "."+PreCommit+".mailtree-"+pid)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(hooks, "."+PreMergeCommit+".mailtree-"+pid), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(t.Context(), at, s); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(victim); string(data) != "mine" {
		t.Errorf("%q %v", data, err)
	}
}

// TestUninstallShared checks that Install refuses a hooks folder that several repositories may share. Uninstall must
// remove the hooks that an earlier version installed there for several repositories.
func TestUninstallShared(t *testing.T) {
	at, s := newSite(t)
	hooks := filepath.Join(filepath.Dir(at.Repo), "hooks")
	if err := os.Mkdir(hooks, 0o755); err != nil {
		t.Fatal(err)
	}
	set := exec.Command("git", "-C", at.Repo, "config", "core.hooksPath", hooks)
	set.Env = at.Env
	if out, err := set.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := Install(t.Context(), at, s); !errors.Is(err, refusal.ErrDenied) {
		t.Errorf("installed in %s: %v", hooks, err)
	}
	h := hook{Name: PreCommit, Program: s.Program, Guards: [1]guarding{{s.Store, "shop"}}}
	text, err := h.render()
	if err != nil {
		t.Fatal(err)
	}
	several := strings.Replace(string(text), `"guards":[`, `"shared":true,"guards":[{"repo":"/other/.git","store":"/s","project":"other"},`, 1)
	several = strings.Replace(several, sumOf(string(text)), sumOf(several), 1)
	for name, data := range map[string]string{PreCommit: several, PreCommit + behind: "old"} {
		if err := os.WriteFile(filepath.Join(hooks, name), []byte(data), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	done, err := Uninstall(t.Context(), at)
	if err != nil || len(done) != 1 || !strings.HasPrefix(done[0], "restored the earlier ") {
		t.Errorf("%q, %v", done, err)
	}
	entries, err := os.ReadDir(hooks)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	if data, err := os.ReadFile(filepath.Join(hooks, PreCommit)); string(data) != "old" {
		t.Errorf("%q, %v", data, err)
	}
}
