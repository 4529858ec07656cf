package maildir_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
)

// filesOf lists a message's files on disk.
func filesOf(t testing.TB, p *maildir.Project, id string) (all []string) {
	t.Helper()
	err := maildir.TreeOf(p).Walk(t.Context(), "", func(path string, _ os.DirEntry) error {
		if strings.Contains(path, id) {
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDelete checks that a message is deleted together with its copies, its marks and a second file with its id. Text
// saved in one of these files just before the deletion must be in the history. The result must list the agents that
// had read the message.
func TestDelete(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "Cat", "Dan")
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob", "Cat"}, BCC: []string{"Dan"}, Subject: "zebra", Body: "b"})
	kept := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "zebra kept", Body: "b"})
	for _, agent := range []string{"Bob", "Dan"} {
		if _, err := p.Box(agent, format.Origin{}).Acknowledge(t.Context(), m.ID); err != nil {
			t.Fatal(err)
		}
	}
	d, err := p.Box("Bob", format.Origin{}).Delivery(t.Context(), m.ID)
	if err != nil {
		t.Fatal(err)
	}
	at := func(path string) string { return filepath.Join(p.Dir(), path) }
	data, err := os.ReadFile(at(d.CopyPath))
	twin := at("agents/Bob/inbox/twin/" + m.ID + ".md")
	err = errors.Join(err, os.MkdirAll(filepath.Dir(twin), 0o700), os.WriteFile(twin, data, 0o600),
		os.WriteFile(at(d.CopyPath), append(data, "a person's note\n"...), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone, err := p.Box("Ann", format.Origin{}).Delete(t.Context(), m.ID)
	if err != nil || !slices.Equal(gone.Readers, []string{"Bob", "Dan"}) || len(gone.Files) != 10 {
		t.Fatalf("%+v, %v", gone, err)
	}
	if left := filesOf(t, p, m.ID); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if hits := find(t, p, "zebra from:Ann"); len(hits) != 1 || hits[0].ID != kept.ID {
		t.Errorf("found %+v", hits)
	}
	if page := inbox(t, p, "Dan"); page.Total != 0 {
		t.Errorf("Dan: %+v", page)
	}
	if err := p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"a person's note": {"log", "-p", "--", d.CopyPath},
		// This may not be the last commit, because Postmaster may report the edit.
		"delete: Ann -> Bob, Cat: zebra\n\nMail-Op: delete\nMail-Id: " + m.ID + "\nAgent: Ann\n": {"log", "--format=%B"},
	} {
		if out := git(t, p, args...); !strings.Contains(out, want) {
			t.Errorf("git %v:\n%s", args, out)
		}
	}
	if _, err := p.Box("Ann", format.Origin{}).Delete(t.Context(), m.ID); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("deleted again: %v", err)
	}
}

// TestDeleteWhileRead checks that no files of a message remain if agents read, pop, archive and acknowledge it while
// it is being deleted.
func TestDeleteWhileRead(t *testing.T) {
	t.Parallel()
	const rounds = 20
	p := project(t, storetest.Config{}, "Ann", "Bob")
	for i := range rounds {
		m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: fmt.Sprint(i), Body: "b"})
		var all sync.WaitGroup
		for _, do := range []func() error{
			func() error { _, err := p.Box("Bob", format.Origin{}).Pop(t.Context()); return err },
			func() error { _, err := p.Box("Bob", format.Origin{}).Archive(t.Context(), m.ID); return err },
			func() error { _, err := p.Box("Bob", format.Origin{}).Acknowledge(t.Context(), m.ID); return err },
		} {
			all.Go(func() {
				if err := do(); err != nil && !errors.Is(err, maildir.ErrNotFound) {
					t.Error(err)
				}
			})
		}
		if _, err := p.Box("Ann", format.Origin{}).Delete(t.Context(), m.ID); err != nil {
			t.Error(err)
		}
		all.Wait()
		if left := filesOf(t, p, m.ID); len(left) > 0 {
			t.Fatalf("round %d left %v", i, left)
		}
	}
	if page := inbox(t, p, "Bob"); page.Total != 0 {
		t.Errorf("%+v", page)
	}
}

func git(t testing.TB, p *maildir.Project, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", p.Dir()}, args...)...).CombinedOutput()
	if err != nil {
		t.Errorf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}
