package maildir_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
)

// TestSyncHangs: while the shared repository does not answer, the state says so after a minute; the local mail goes on.
func TestSyncHangs(t *testing.T) {
	t.Parallel()
	clock := &stoppedClock{at: time.Now()}
	a := sharer{Store: storetest.Open(t, storetest.Config{Sync: time.Hour, Monotonic: clock.now})}
	var err error
	if a.p, err = a.EnsureProject(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
	began := filepath.Join(t.TempDir(), "began")
	dir := a.p.Tree.Dir()
	gitIn(t, dir, "config", "core.sshCommand", "touch "+began+"; sleep 600; :")
	gitIn(t, dir, "remote", "add", "origin", "ssh://example.invalid/mail.git")
	if err := a.p.SetSync(true); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := a.p.SyncNow(ctx)
		ended <- err
	}()
	until(t, "the fetch", func() bool {
		_, err := os.Stat(began)
		return err == nil
	})
	if s := a.p.SyncState(); s.Problem != "" {
		t.Errorf("at once: %s", s)
	}
	clock.move(2 * time.Minute)
	if s := a.p.SyncState(); !strings.Contains(s.String(), "does not answer") || time.Since(s.Since) < time.Minute {
		t.Errorf("after two minutes: %q since %v", s, s.Since)
	}
	a.register(t, "Ann")
	a.send(t, "Ann", "Ann", "goes on")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestSyncFull: what the shared repository refuses stays here, with Git's words for it, and is pushed later.
func TestSyncFull(t *testing.T) {
	t.Parallel()
	bare, all := shared(t, 1, time.Hour)
	a := all[0]
	a.register(t, "Ann")
	hook := filepath.Join(bare, "hooks", "pre-receive")
	if err := errors.Join(os.MkdirAll(filepath.Dir(hook), 0o700),
		os.WriteFile(hook, []byte("#!/bin/sh\necho 'No space left on device' >&2\nexit 1\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	a.send(t, "Ann", "Ann", "one")
	if _, err := a.p.SyncNow(t.Context()); err == nil {
		t.Error("it was pushed")
	}
	a.send(t, "Ann", "Ann", "two")
	if s := a.p.SyncState(); !strings.Contains(s.Problem, "No space left on device") || s.Ahead == 0 {
		t.Errorf("state %+v", s)
	}
	if err := os.Remove(hook); err != nil {
		t.Fatal(err)
	}
	a.now(t)
	if here, there := gitIn(t, a.p.Tree.Dir(), "rev-parse", "HEAD"), gitIn(t, bare, "rev-parse", "main"); here != there {
		t.Errorf("%s is there, %s here", there, here)
	}
}
