package maildir_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir/format"
	"mailtree/maildir/hook"
	"mailtree/maildir/index"
)

// TestHookOfProjectBeingOpened checks that changes in the feed are not skipped if their project is still being
// opened. Changes of a project that does not exist must be skipped.
func TestHookOfProjectBeingOpened(t *testing.T) {
	t.Parallel()
	s, log, changes, goOn := openingWithHook(t)
	fired := make(chan string, 1)
	err := waits.Go(`maildir\.\(\*Store\)\.beginAdding$`, func() {
		all, err := s.Firings(t.Context(), changes)
		if err != nil || len(all) != 1 {
			t.Errorf("%+v (%v)", all, err)
			fired <- ""
			return
		}
		run, why, err := s.Fire(t.Context(), all[0], log)
		if err != nil || run == nil {
			why = "no run: " + why
		}
		fired <- why
	})
	if err := errors.Join(err, goOn()); err != nil {
		t.Error(err)
	}
	if why := <-fired; why != "" {
		t.Error(why)
	}
}

// TestEndWhileProjectIsOpened checks that a server shuts down without waiting for a project that is being opened. Calls
// that need the project or its hooks must fail.
func TestEndWhileProjectIsOpened(t *testing.T) {
	t.Parallel()
	s, log, changes, goOn := openingWithHook(t)
	ctx, end := context.WithCancel(t.Context())
	slug := changes[0].Project
	ended := make(chan error, 4)
	for _, waits := range []func() error{
		func() error { _, err := s.Firings(ctx, changes); return err },
		func() error { _, err := s.MissedFirings(ctx, log); return err },
		func() error {
			_, why, err := s.Fire(ctx, hook.Firing{Hook: hook.Hook{Project: slug, Mailbox: "Bob", Name: "h"}, ID: "m1"}, log)
			if why != "" {
				err = errors.New("decided: " + why)
			}
			return err
		},
		func() error { _, err := s.Project(ctx, slug); return err },
	} {
		go func() { ended <- waits() }()
	}
	end()
	for range cap(ended) {
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("the ending server is waiting for the project")
		}
	}
	if err := goOn(); err != nil {
		t.Error(err)
	}
}

// openingWithHook returns a store with a hook for a mailbox of a project that is being opened. The opening of the
// project pauses after its changes are in the feed, until goOn is called.
func openingWithHook(t *testing.T) (s *storetest.Store, log *hook.Log, changes []index.Change, goOn func() error) {
	t.Helper()
	var h halts
	reconciled := func(x index.Index) index.Index { return &afterwards{x, h.pass} }
	s = storetest.Open(t, storetest.Config{NoWatcher: true, Index: reconciled, User: os.Geteuid})
	slug := format.Slug("/abs/path/cloned")
	hook := `[{"project": "` + slug + `", "mailbox": "Bob", "name": "h", "event": "on_receive", ` +
		`"cmd": ["/bin/true"], "timeout_secs": 9, "fire_on_untrusted": true, "created": "2020-01-01T00:00:00Z"}]`
	if err := os.WriteFile(filepath.Join(s.Root(), "hooks.json"), []byte(hook), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := s.OpenHookLog()
	if err != nil {
		t.Fatal(err)
	}
	m := format.Message{
		ID:         "m1",
		From:       "Ann",
		To:         []string{"Bob"},
		Subject:    "s",
		Importance: format.Normal,
		Created:    time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Body:       "b",
	}
	cloneByHand(t, s, "agents/Bob/inbox/m1.md", string(format.FormatMessage(&m)))
	opening := h.at(isStep(slug))
	opened := make(chan error, 1)
	go func() {
		_, err := s.Project(t.Context(), slug)
		opened <- err
	}()
	<-opening.reached
	if changes, err = s.Changes(t.Context(), 0, 100); err != nil {
		t.Fatal(err)
	}
	return s, log, changes, func() error { close(opening.goOn); return <-opened }
}

// afterwards is an index that calls pass after each Reconcile.
type afterwards struct {
	index.Index
	pass func(project string)
}

func (x *afterwards) Reconcile(ctx context.Context, project string, progress func(int)) (index.Ingested, error) {
	in, err := x.Index.Reconcile(ctx, project, progress)
	x.pass(project)
	return in, err
}
