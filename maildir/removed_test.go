package maildir_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/inmemory"
	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/indexer"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/tree"
)

// TestProjectRemoved checks that if a project's folder is removed while the store is running, the project is no
// longer listed, waiting callers are notified, and the next call recreates the project.
func TestProjectRemoved(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	const key = "/abs/path/shop"
	p := projectOf(t, s, key)
	for round := range 3 {
		send(t, p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "one", Body: "b"})
		waiting := waitFor(t, p, "Bob")
		until(t, "the folder is removed", func() bool { // a commit in progress may write a file into the folder
			return os.RemoveAll(filepath.Dir(p.Dir())) == nil
		})
		removed := time.Now()
		for range cap(waiting) {
			select {
			case err := <-waiting:
				if !errors.Is(err, maildir.ErrNotFound) {
					t.Errorf("round %d: a waiting call got %v, want not found", round, err)
				}
			case <-time.After(time.Minute):
				t.Fatalf("round %d: a call is still waiting in a removed project", round)
			}
		}
		waits.Limit(t, "to notify the waiting callers", time.Since(removed), 250*time.Millisecond)
		if _, err := s.Project(t.Context(), key); !errors.Is(err, maildir.ErrNotFound) {
			t.Errorf("round %d: the removed project was found: %v", round, err)
		}
		p = projectOf(t, s, key)
		if page := inbox(t, p, "Ann"); page.Total != 0 {
			t.Errorf("round %d: %d messages in a new project", round, page.Total)
		}
	}
}

// TestProjectMovedBack checks that if a project's folder is moved away and back, the project works again and still has
// its mail.
func TestProjectMovedBack(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	const key = "/abs/path/shop"
	p := projectOf(t, s, key)
	send(t, p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "one", Body: "b"})
	if err := p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir, away := filepath.Dir(p.Dir()), filepath.Join(inmemory.Dir(t), "away")
	for range 2 {
		if err := os.Rename(dir, away); err != nil {
			t.Fatal(err)
		}
		until(t, "the project is gone", func() bool { _, err := s.Project(t.Context(), key); return errors.Is(err, maildir.ErrNotFound) })
		if err := os.Rename(away, dir); err != nil {
			t.Fatal(err)
		}
		until(t, "the project is back", func() bool { _, err := s.Project(t.Context(), key); return err == nil })
	}
	p = projectOf(t, s, key)
	send(t, p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "two", Body: "b"})
	if page := inbox(t, p, "Ann"); page.Total != 2 {
		t.Errorf("%d messages, want 2", page.Total)
	}
}

// TestProjectReplacedAtStop checks that the index keeps a project's mail if the project's folder was replaced, and
// the server ends while it is opening the new folder.
func TestProjectReplacedAtStop(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	opening := func() {}
	s := storetest.Open(t, storetest.Config{NoWatcher: true, NoCheck: true, Index: func(x index.Index) index.Index {
		return &watched{Index: x, compare: func() { opening() }}
	}})
	p := projectOf(t, s, "/abs/path/shop")
	send(t, p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "one", Body: "b"})
	if err := p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	dir := p.Dir()
	aside, copied := filepath.Join(filepath.Dir(dir), "aside"), filepath.Join(filepath.Dir(dir), "copied")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil { // the history still writes to the old folder
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(dir, aside), os.Rename(copied, dir)); err != nil {
		t.Fatal(err)
	}
	opening = end
	s.Edited(ctx, []string{p.Slug}, false)
	if ctx.Err() == nil {
		t.Fatal("the folder was not opened")
	}
	r, err := indexer.Verify(t.Context(), s.Index, map[string]*tree.Tree{p.Slug: maildir.TreeOf(p)})
	if err != nil || len(r.Differences) > 0 {
		t.Errorf("%v\n%s", err, strings.Join(r.Differences, "\n"))
	}
}

// projectOf returns the project with the given key. It creates the project, Ann and Bob if they do not exist.
func projectOf(t *testing.T, s *storetest.Store, key string) *maildir.Project {
	t.Helper()
	p, err := s.EnsureProject(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Ann", "Bob"} {
		if err := p.Agents.EnsureAgent(t.Context(), name, maildir.Registration{Program: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// waitFor starts two calls that wait for the agent's mail, and returns when both are waiting. The channel receives
// their errors.
func waitFor(t *testing.T, p *maildir.Project, agent string) chan error {
	t.Helper()
	errs, began := make(chan error, 2), make(chan bool, 2)
	waiting := maildir.Waiting{For: maildir.MaxWait, Admit: func() error { began <- true; return nil }}
	calls := []func(ctx context.Context) error{
		func(ctx context.Context) error {
			_, err := p.Box(agent, format.Origin{}).PopWait(ctx, waiting, nil)
			return err
		},
		func(ctx context.Context) error {
			_, err := p.Box(agent, format.Origin{}).Inbox(ctx, index.InboxQuery{}, false, waiting)
			return err
		},
	}
	for _, call := range calls {
		go func() { errs <- call(t.Context()) }()
	}
	for range calls {
		<-began
	}
	return errs
}
