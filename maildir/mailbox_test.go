package maildir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
)

// TestGuestMailboxesAreBounded: over all projects of a store; what is deleted, or removed by hand, makes room. The
// store's user and root have no bound.
func TestGuestMailboxesAreBounded(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, ownedBy(500))
	var projects []*maildir.Project
	for _, key := range []string{shop, maildir.DefaultProject} {
		p, err := s.EnsureProject(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		projects = append(projects, p)
	}
	guest := maildir.Caller{UID: 1500}
	create := func(p *maildir.Project, name string, by maildir.Caller, want error) {
		t.Helper()
		if _, err := p.CreateMailbox(t.Context(), name, by); !errors.Is(err, want) {
			t.Fatalf("%s by %+v: %v, want %v", name, by, err, want)
		}
	}
	for i := range maildir.MaxGuestMailboxes {
		create(projects[i%2], fmt.Sprint("box", i), guest, nil)
	}
	p := projects[0]
	create(p, "more", guest, maildir.ErrTooLarge)
	create(projects[1], "more", guest, maildir.ErrTooLarge)
	create(p, "box0", guest, nil) // it is there
	create(p, "more", maildir.Caller{UID: 1501}, nil)
	for _, by := range []maildir.Caller{{UID: 500}, {Root: true}} {
		for i := range maildir.MaxGuestMailboxes + 1 {
			create(p, fmt.Sprint("own", by.UID, "-", i), by, nil)
		}
	}
	if _, err := p.DeleteMailbox(t.Context(), "box0", false, guest); err != nil {
		t.Fatal(err)
	}
	create(p, "again", guest, nil)
	create(p, "more2", guest, maildir.ErrTooLarge)
	removeAgent(t, p, "box2")
	create(p, "more2", guest, nil)
	create(p, "more3", guest, maildir.ErrTooLarge)
}

// removeAgent removes an agent's folder as a person does, and waits until that is indexed.
func removeAgent(t testing.TB, p *maildir.Project, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(p.Tree().Dir(), "agents", name)); err != nil {
		t.Fatal(err)
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
}
