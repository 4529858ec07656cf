package maildir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/hook"
)

// TestGuestMailboxesAreBounded checks that the limit on a guest's mailboxes applies to the total number in all
// projects of a store. After a mailbox is deleted, even by hand, the guest must be able to create another one. The
// limit must not apply to the store's user and root.
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
		if _, err := p.As(by, format.Origin{}).CreateMailbox(t.Context(), name); !errors.Is(err, want) {
			t.Fatalf("%s by %+v: %v, want %v", name, by, err, want)
		}
	}
	for i := range maildir.MaxGuestMailboxes {
		create(projects[i%2], fmt.Sprint("box", i), guest, nil)
	}
	p := projects[0]
	create(p, "more", guest, maildir.ErrTooLarge)
	create(projects[1], "more", guest, maildir.ErrTooLarge)
	create(p, "box0", guest, nil) // this mailbox already exists
	create(p, "more", maildir.Caller{UID: 1501}, nil)
	for _, by := range []maildir.Caller{{UID: 500}, {Root: true}} {
		for i := range maildir.MaxGuestMailboxes + 1 {
			create(p, fmt.Sprint("own", by.UID, "-", i), by, nil)
		}
	}
	if _, err := p.As(guest, format.Origin{}).DeleteMailbox(t.Context(), "box0", false); err != nil {
		t.Fatal(err)
	}
	create(p, "again", guest, nil)
	create(p, "more2", guest, maildir.ErrTooLarge)
	removeAgent(t, p, "box2")
	create(p, "more2", guest, nil)
	create(p, "more3", guest, maildir.ErrTooLarge)
}

// removeAgent removes an agent's folder, as a user would, and waits until the removal is indexed.
func removeAgent(t testing.TB, p *maildir.Project, name string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(p.Dir(), "agents", name)); err != nil {
		t.Fatal(err)
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestOwnerOfAnAgentMadeAnew checks that a mailbox no longer has an owner after the user has removed its folder. A
// new agent with the same name must belong to the user who creates it, and must have none of the earlier owner's
// hooks.
func TestOwnerOfAnAgentMadeAnew(t *testing.T) {
	t.Parallel()
	const guest, other, me = 1500, 1501, 0
	for name, tt := range map[string]struct {
		make  func(p *maildir.Project) error
		owner int
	}{
		"register": {func(p *maildir.Project) error {
			_, err := p.Agents.Register(t.Context(), maildir.Registration{Program: "x", Model: "y", NameHint: "eve"})
			return err
		}, me},
		"first contact": {func(p *maildir.Project) error {
			return p.Agents.EnsureAgent(t.Context(), "eve", maildir.Registration{})
		}, me},
		"another guest": {func(p *maildir.Project) error {
			_, err := p.As(maildir.Caller{UID: other}, format.Origin{}).CreateMailbox(t.Context(), "eve")
			return err
		}, other},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := project(t, ownedBy(me), "Ann")
			if _, err := p.As(maildir.Caller{UID: guest}, format.Origin{}).CreateMailbox(t.Context(), "eve"); err != nil {
				t.Fatal(err)
			}
			hook := hook.Hook{Event: hook.OnReceive, Cmd: []string{"/bin/true"}, Timeout: 1}
			stale := openBox(t, p, "eve", guest)
			if _, err := stale.CreateHook(t.Context(), hook); err != nil {
				t.Fatal(err)
			}
			removeAgent(t, p, "eve")
			if err := tt.make(p); err != nil {
				t.Fatal(err)
			}
			m := send(t, p, "Ann", maildir.Draft{To: []string{"eve"}, Subject: "s", Body: "secret"})
			if _, err := p.As(maildir.Caller{UID: guest}, format.Origin{}).Box(t.Context(), "eve"); !errors.Is(err, maildir.ErrDenied) {
				t.Errorf("the former owner can open the mailbox: %v", err)
			}
			if _, err := p.As(maildir.Caller{UID: guest}, format.Origin{}).DeleteMailbox(t.Context(), "eve", true); !errors.Is(err, maildir.ErrDenied) {
				t.Errorf("the former owner can delete the mailbox: %v", err)
			}
			b := openBox(t, p, "eve", tt.owner)
			if _, err := b.Read(t.Context(), maildir.RawQuery{ID: m.ID}); err != nil || b.Owner != tt.owner {
				t.Errorf("owner %d, %v; want %d", b.Owner, err, tt.owner)
			}
			if hooks, err := p.As(maildir.Caller{Root: true}, format.Origin{}).Hooks(t.Context(), ""); err != nil || len(hooks) > 0 {
				t.Errorf("hooks left: %+v %v", hooks, err)
			}
		})
	}
}

// TestOwnerKeepsHooks checks that a mailbox keeps its hooks if its owner creates it again.
func TestOwnerKeepsHooks(t *testing.T) {
	t.Parallel()
	p := project(t, ownedBy(0))
	guest := maildir.Caller{UID: 1500}
	for range 2 {
		if _, err := p.As(guest, format.Origin{}).CreateMailbox(t.Context(), "eve"); err != nil {
			t.Fatal(err)
		}
		if _, err := openBox(t, p, "eve", guest.UID).CreateHook(t.Context(), hook.Hook{Event: hook.OnReceive, Cmd: []string{"/bin/true"}, Timeout: 1}); err != nil {
			t.Fatal(err)
		}
		removeAgent(t, p, "eve")
	}
	if _, err := p.As(guest, format.Origin{}).CreateMailbox(t.Context(), "eve"); err != nil {
		t.Fatal(err)
	}
	if hooks, err := p.As(guest, format.Origin{}).Hooks(t.Context(), "eve"); err != nil || len(hooks) != 1 {
		t.Errorf("%+v %v", hooks, err)
	}
}
