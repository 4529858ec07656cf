package maildir_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
)

// TestSyncHangs checks that if the shared repository does not respond for a minute, the state reports this. Local
// mail must keep working.
func TestSyncHangs(t *testing.T) {
	t.Parallel()
	clock := &movable{stopped: time.Now()}
	a := sharer{Store: storetest.Open(t, storetest.Config{Sync: onlyAsked, Monotonic: clock.now})}
	var err error
	if a.p, err = a.EnsureProject(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	began := filepath.Join(t.TempDir(), "began")
	dir := a.p.Dir()
	gitIn(t, dir, "config", "core.sshCommand", "touch "+began+"; sleep 600; :")
	gitIn(t, dir, "remote", "add", "origin", "ssh://example.invalid/mail.git")
	if err := a.p.Sync.Set(true); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := a.p.Sync.Now(ctx)
		ended <- err
	}()
	until(t, "the fetch", func() bool {
		_, err := os.Stat(began)
		return err == nil
	})
	if s := a.p.Sync.State(); s.Problem != "" {
		t.Errorf("at once: %s", s)
	}
	clock.move(2 * time.Minute)
	if s := a.p.Sync.State(); !strings.Contains(s.String(), "is not responding") || time.Since(s.Since) < time.Minute {
		t.Errorf("after two minutes: %q since %v", s, s.Since)
	}
	a.register(t, "Ann")
	a.send(t, "Ann", "Ann", "goes on")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// metHistory is a history that calls met and flush once each. It calls met right after it has compared the branches,
// and flush right before it commits.
type metHistory struct {
	history.Log
	met, flush *func()
}

func once(f *func()) {
	if do := *f; do != nil {
		*f = nil
		do()
	}
}

func (x metHistory) Compare(ctx context.Context) (*history.MergeInput, error) {
	defer once(x.met)
	return x.Log.Compare(ctx)
}

func (x metHistory) Flush(ctx context.Context) error {
	once(x.flush)
	return x.Log.Flush(ctx)
}

// TestSyncMeetsRebase checks that aborting a rebase is not mistaken for deleting files. While the server is merging
// other machines' commits, a user begins a rebase onto the same commits and aborts it. The rebase writes the commits'
// files to the tree, and the abort removes them.
func TestSyncMeetsRebase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ own, written bool }{
		"with a push":                   {own: true},
		"without a push":                {},
		"files written, with a push":    {own: true, written: true},
		"files written, without a push": {written: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var met, flush func()
			a, b, _ := sharedWith(t, storetest.Config{History: func(h history.Log) history.Log { return metHistory{h, &met, &flush} }})
			a.send(t, "Ann", "Bob", "across")
			a.now(t)
			if c.own {
				b.send(t, "Bob", "Ann", "back")
				if err := b.p.FlushHistory(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			git := func(args ...string) { gitIn(t, b.p.Dir(), args...) }
			begin := func() {
				git("fetch", "-q", "origin")
				git("checkout", "-q", "-f", "--detach", "refs/remotes/origin/main")
			}
			if c.written { // the rebase begins only after the merge has written its files
				met = func() {
					flush = func() {
						begin()
						git("checkout", "-q", "main")
					}
				}
			} else {
				met = begin
			}
			if _, err := b.p.Sync.Now(t.Context()); (err == nil) != c.written {
				t.Errorf("a merge during a rebase: %v", err)
			}
			git("checkout", "-q", "main")
			level(t, a, b)
			if got := b.subjects(t, "Bob"); !slices.Equal(got, []string{"across"}) {
				t.Errorf("Bob has %q", got)
			}
		})
	}
}

// TestSyncMeetsReset checks that if a user removes commits from the branch during a merge, the sync restores the
// commits that other machines also have.
func TestSyncMeetsReset(t *testing.T) {
	t.Parallel()
	for _, written := range []bool{false, true} {
		t.Run(fmt.Sprint("files written ", written), func(t *testing.T) {
			t.Parallel()
			var met, flush func()
			a, b, _ := sharedWith(t, storetest.Config{History: func(h history.Log) history.Log { return metHistory{h, &met, &flush} }})
			a.send(t, "Ann", "Bob", "first")
			level(t, a, b)
			a.send(t, "Ann", "Bob", "second")
			a.now(t)
			reset := func() { gitIn(t, b.p.Dir(), "reset", "-q", "--hard", "HEAD~1") }
			met = reset
			if written {
				met = func() { flush = reset }
			}
			b.now(t)
			level(t, a, b)
			if got := b.subjects(t, "Bob"); !slices.Equal(got, []string{"first", "second"}) {
				t.Errorf("Bob has %q", got)
			}
		})
	}
}

// lazyHistory is a history that does not commit edits.
type lazyHistory struct{ history.Log }

func (lazyHistory) RecordEdits([]string) {}

// TestSyncUncommitted checks that a round reports a file if another machine has changed it and it has uncommitted
// changes on this machine.
func TestSyncUncommitted(t *testing.T) {
	t.Parallel()
	a, b, _ := sharedWith(t, storetest.Config{History: func(h history.Log) history.Log { return lazyHistory{h} }})
	for _, m := range []sharer{a, b} {
		if err := os.WriteFile(filepath.Join(m.p.Dir(), "README.md"), []byte(m.p.Slug), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.now(t)
	if _, err := b.p.Sync.Now(t.Context()); err == nil || !strings.Contains(err.Error(), "version of README.md was not merged") {
		t.Error(err)
	}
	if s := b.p.Sync.State(); !strings.Contains(s.Problem, "git add") {
		t.Errorf("problem %q", s.Problem)
	}
	gitIn(t, b.p.Dir(), "add", "README.md")
	gitIn(t, b.p.Dir(), "commit", "-qm", "mine")
	level(t, a, b)
}

// TestSyncFull checks that commits that the shared repository rejects are kept on this machine and pushed later. The
// state must contain Git's error message.
func TestSyncFull(t *testing.T) {
	t.Parallel()
	bare, all := shared(t, 1, onlyAsked)
	a := all[0]
	a.register(t, "Ann")
	hook := filepath.Join(bare, "hooks", "pre-receive")
	if err := errors.Join(os.MkdirAll(filepath.Dir(hook), 0o700),
		os.WriteFile(hook, []byte("#!/bin/sh\necho 'No space left on device' >&2\nexit 1\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	a.send(t, "Ann", "Ann", "one")
	if _, err := a.p.Sync.Now(t.Context()); err == nil {
		t.Error("the refused commit was pushed")
	}
	a.send(t, "Ann", "Ann", "two")
	if s := a.p.Sync.State(); !strings.Contains(s.Problem, "No space left on device") || s.Ahead == 0 {
		t.Errorf("state %+v", s)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	a.now(t)
	if here, there := gitIn(t, a.p.Dir(), "rev-parse", "HEAD"), gitIn(t, bare, "rev-parse", "main"); here != there {
		t.Errorf("the shared repository has %s, this machine has %s", there, here)
	}
}

// hostileTree creates a Git tree object with one entry, bypassing Git's checks.
func hostileTree(t testing.TB, dir, name, mode, hash string) string {
	t.Helper()
	raw, err := hex.DecodeString(hash)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("git", "-C", dir, "hash-object", "-t", "tree", "-w", "--stdin", "--literally")
	c.Stdin = strings.NewReader(mode + " " + name + "\x00" + string(raw))
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestSyncHostilePaths checks what happens to files that another machine pushes to various invalid paths.
func TestSyncHostilePaths(t *testing.T) {
	t.Parallel()
	const refused, stays, comes = "refused", "stays", "comes"
	for path, want := range map[string]string{
		"x/.git/hooks/post-checkout":    refused,
		"x/.GIT/config":                 refused,
		"x/git~1/config":                refused,
		"x/../../y":                     refused,
		"x/./y":                         refused,
		"x/.mailtree/journal/y":         stays,
		"x/" + strings.Repeat("y", 256): stays,
		"x" + strings.Repeat("/"+strings.Repeat("y", 99), 41): stays,
		"x/esc\x1b[2J":                  stays,
		"x/\xff":                        stays,
		"x/" + strings.Repeat("y", 255): comes,
		"x" + strings.Repeat("/y", 300): comes,
		"x/Y/y":                         comes,
	} {
		t.Run(fmt.Sprintf("%.40q", path), func(t *testing.T) {
			t.Parallel()
			bare, all := shared(t, 1, onlyAsked)
			a := all[0]
			a.register(t, "Ann")
			a.now(t)
			evil := filepath.Join(t.TempDir(), "evil")
			gitIn(t, t.TempDir(), "clone", "-q", bare, evil)
			hash, mode := gitIn(t, evil, "rev-parse", "HEAD:project.json"), "100644"
			names := strings.Split(path, "/")
			for _, name := range slices.Backward(names[1:]) {
				hash, mode = hostileTree(t, evil, name, mode, hash), "40000"
			}
			c := exec.Command("git", "-C", evil, "mktree")
			c.Stdin = strings.NewReader(gitIn(t, evil, "ls-tree", "HEAD") + "\n040000 tree " + hash + "\tx\n")
			root, err := c.Output()
			if err != nil {
				t.Fatal(err)
			}
			gitIn(t, evil, "push", "-q", "origin", gitIn(t, evil, "commit-tree", "-p", "HEAD", "-m", "evil", strings.TrimSpace(string(root)))+":main")

			is := comes
			if _, err := a.p.Sync.Now(t.Context()); err != nil {
				is = refused
			} else if _, err := os.Stat(filepath.Join(a.p.Dir(), path)); err != nil {
				is = stays
			}
			if is != want {
				t.Errorf("%s, not %s: %s", is, want, a.p.Sync.State())
			}
			a.send(t, "Ann", "Ann", "goes on")
			if got := a.subjects(t, "Ann"); fmt.Sprint(got) != "[goes on]" {
				t.Errorf("Ann has %v", got)
			}
			if err := a.p.FlushHistory(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSyncHostileMachine checks the data that another machine publishes about itself. This data must neither refer to
// files outside its folder nor contain long text.
func TestSyncHostileMachine(t *testing.T) {
	t.Parallel()
	a, b := sharedByTwo(t)
	for name, machine := range map[string]string{"Dot": "../../../x", "Esc": "\x1b[31m", "Far": strings.Repeat("x", 30_000), "Fox": "too large"} {
		b.register(t, name)
		file := filepath.Join(b.p.Dir(), format.ProfilePath(name))
		data := format.FormatProfile(format.Profile{Name: name, Inception: time.Now(), Machine: machine})
		if name == "Fox" {
			data = append(data, bytes.Repeat([]byte(" "), 5<<20)...)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	level(t, a, b)
	rows, err := a.p.Agents.List(t.Context())
	if err != nil || len(rows) != 6 {
		t.Errorf("agents %v, %v", rows, err)
	}
	for i := range rows {
		if on := a.p.MachineOf(&rows[i]); len(on) > 100 || strings.Contains(on, "\x1b") {
			t.Errorf("%s is on %.200q", rows[i].Name, on)
		}
	}
	a.send(t, "Ann", "Far", "goes on")
}
