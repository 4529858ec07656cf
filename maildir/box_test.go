package maildir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/hook"
)

// ownedBy returns the configuration of a store that belongs to the given OS user.
func ownedBy(uid int) storetest.Config {
	return storetest.Config{User: func() int { return uid }}
}

func openBox(t testing.TB, p *maildir.Project, name string, uid int) *maildir.UserBox {
	t.Helper()
	b, err := p.As(maildir.Caller{UID: uid, Root: uid == 0}, format.Origin{}).Box(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestOwners checks that an agent without an entry in owners.json belongs to the store's user. A caller with a
// negative uid must not own any agent, not even an agent without an owner.
func TestOwners(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, ownedBy(500))
	p, err := s.EnsureProject(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"ann", "bob", "lost"} {
		if err := p.Agents.EnsureAgent(t.Context(), n, maildir.Registration{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.As(maildir.Caller{UID: 500}, format.Origin{}).CreateMailbox(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	owners := `{"` + p.Slug + `/bob": 501, "` + p.Slug + `/lost": -1}`
	if err := os.WriteFile(filepath.Join(s.Root(), "owners.json"), []byte(owners), 0o600); err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[int]string{500: "ann", 501: "bob", 502: "", -1: "", -2: "", 0: "ann bob lost"} {
		all, err := p.As(maildir.Caller{UID: uid, Root: uid == 0}, format.Origin{}).Mailboxes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, m := range all {
			names = append(names, m.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("uid %d owns %q, want %q", uid, got, want)
		}
	}
}

// TestTrust checks that a copy is trusted if it has this store's seal, is in the inbox that it was sent to, and comes
// from a sender that the server itself has authenticated. Trust must depend on the content of the copy, not on the
// content of the canonical file.
func TestTrust(t *testing.T) {
	t.Parallel()
	p := project(t, ownedBy(500), "Ann", "Bob", "Cat")
	for _, tt := range []struct {
		name, auth, reader string
		spoil              func(t *testing.T, dir string, m *maildir.Sent)
		want, by           string
	}{
		{"uid", "uid:1000", "Bob", nil, maildir.Trusted, "uid 1000 (program)"},
		{"token", "token", "Bob", nil, maildir.Trusted, "token"},
		{"blind copy", "token", "Cat", nil, maildir.Trusted, "token"},
		{"open", "none", "Bob", nil, maildir.Unproven, "self-asserted"},
		{"copy edited", "token", "Bob", func(t *testing.T, dir string, m *maildir.Sent) { edit(t, dir, "agents/Bob/inbox", m, "text", "test") }, maildir.Untrusted, "self-asserted"},
		{"auth edited", "none", "Bob", func(t *testing.T, dir string, m *maildir.Sent) {
			edit(t, dir, "agents/Bob/inbox", m, `"auth": "none"`, `"auth": "token"`)
		}, maildir.Untrusted, "self-asserted"},
		{"canonical edited", "token", "Bob", func(t *testing.T, dir string, m *maildir.Sent) { edit(t, dir, "messages", m, "text", "test") }, maildir.Trusted, "token"},
		{"put elsewhere", "token", "Ann", func(t *testing.T, dir string, m *maildir.Sent) {
			data, err := os.ReadFile(copyOf(dir, "agents/Bob/inbox", m))
			if err == nil {
				err = os.MkdirAll(filepath.Join(dir, "agents/Ann/inbox"), 0o700)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "agents/Ann/inbox", m.ID+".md"), data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, maildir.Untrusted, "token"},
	} {
		m := sendFrom(t, p.Box("Ann", format.Origin{Auth: tt.auth}), maildir.Draft{To: []string{"Bob"}, BCC: []string{"Cat"}, Subject: "s", Body: "text"})
		if tt.spoil != nil {
			tt.spoil(t, p.Dir(), m)
			if err := p.Rescan(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		l, err := openBox(t, p, tt.reader, 500).Read(t.Context(), maildir.RawQuery{ID: m.ID})
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if l.Trust != tt.want || l.Voucher.String() != tt.by {
			t.Errorf("%s: trust is %q by %q, want %q by %q", tt.name, l.Trust, l.Voucher, tt.want, tt.by)
		}
	}
}

func copyOf(dir, box string, m *maildir.Sent) string {
	return filepath.Join(dir, box, m.Created.Format("2006/01/02"), m.ID+".md")
}

func edit(t *testing.T, dir, box string, m *maildir.Sent, old, text string) {
	t.Helper()
	file := copyOf(dir, box, m)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(data), old, text, 1)
	if changed == string(data) {
		t.Fatalf("%s has no %q", file, old)
	}
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestGuestAttachments checks that other users do not get the rights of the store's user. They can attach their own
// files, but not files from the mail tree.
func TestGuestAttachments(t *testing.T) {
	t.Parallel()
	me := os.Geteuid()
	docs := t.TempDir()
	if err := os.WriteFile(filepath.Join(docs, "a.txt"), []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.txt", filepath.Join(docs, "link.txt")); err != nil {
		t.Fatal(err)
	}
	cfg := ownedBy(me + 1) // the store belongs to another user, so the owner of the files is a guest
	cfg.Attachments.Roots = []string{docs}
	p := project(t, cfg, "Ann")
	const someoneElse = 12345
	for _, uid := range []int{me, someoneElse} {
		if uid == 0 { // root is never a guest
			uid = me
		}
		if _, err := p.As(maildir.Caller{UID: uid}, format.Origin{}).CreateMailbox(t.Context(), name(uid)); err != nil {
			t.Fatal(err)
		}
	}
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "secret"})
	canonical := copyOf(p.Dir(), "messages", m)
	inTree, err := filepath.Rel(p.Dir(), canonical)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		uid  int
		path string
		want bool
	}{
		{me, filepath.Join(docs, "a.txt"), true}, {me, "a.txt", true}, {me, "link.txt", false}, {me, canonical, false}, {me, inTree, false}, {me, "none", false},
		{someoneElse, "a.txt", false}, {someoneElse, inTree, false}, {me + 1, "a.txt", true}, {me + 1, inTree, true}, {me + 1, "none", false},
	} {
		box := name(tt.uid)
		if tt.uid == me+1 {
			box = "Ann"
		}
		b, err := p.As(maildir.Caller{UID: tt.uid}, format.Origin{}).Box(t.Context(), box)
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.Send(t.Context(), maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b", Attachments: []string{tt.path}})
		if (err == nil) != tt.want || err != nil && (!errors.Is(err, maildir.ErrNotFound) || !strings.Contains(err.Error(), tt.path[:min(len(tt.path), 100)])) {
			t.Errorf("uid %d attaches %s: %v", tt.uid, tt.path, err)
		}
		const notLent = "was not found, or you are not allowed to attach it"
		if guest := tt.uid != me+1; err != nil && strings.Contains(err.Error(), notLent) != guest {
			t.Errorf("uid %d learns about %s: %v", tt.uid, tt.path, err)
		}
	}
}

func name(uid int) string {
	if uid == os.Geteuid() {
		return "mine"
	}
	return "theirs"
}

// TestDeleteMailbox checks that a mailbox is not deleted if mail arrives after the caller has checked that it is
// empty. When a mailbox is deleted, its hooks and its entry in owners.json must be deleted too.
func TestDeleteMailbox(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, ownedBy(0))
	p, err := s.EnsureProject(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.As(maildir.Caller{UID: 7}, format.Origin{}).CreateMailbox(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	b := openBox(t, p, "ann", 7)
	if _, err := b.CreateHook(t.Context(), hook.Hook{Event: hook.OnReceive, Cmd: []string{"/bin/true"}, Timeout: 1}); err != nil {
		t.Fatal(err)
	}
	m := send(t, p, "ann", maildir.Draft{To: []string{"ann"}, Subject: "s", Body: "b"})
	if was, err := b.Delete(t.Context(), false); !errors.Is(err, maildir.ErrConflict) || was.Total != 1 || was.Sent != 1 {
		t.Errorf("%+v %v", was, err)
	}
	if _, err := b.Delete(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if l, err := p.As(maildir.Caller{Root: true}, format.Origin{}).Hooks(t.Context(), ""); err != nil || len(l) > 0 {
		t.Errorf("hooks left: %+v %v", l, err)
	}
	if data, err := os.ReadFile(filepath.Join(s.Root(), "owners.json")); err != nil || strings.Contains(string(data), "ann") {
		t.Errorf("owners.json: %s %v", data, err)
	}
	if _, err := p.Message(t.Context(), m.ID); err != nil {
		t.Errorf("the message was deleted with the mailbox: %v", err)
	}
}

// TestReplyToAnothersMessage checks that a caller that knows the id of a message in another mailbox learns neither the
// message's thread nor the earlier messages in that thread. The caller's reply must not join the thread, unless the
// message is in the caller's own inbox or outbox.
func TestReplyToAnothersMessage(t *testing.T) {
	t.Parallel()
	p := project(t, ownedBy(500), "Ann", "Bob", "Cat")
	const guest = 1500
	if _, err := p.As(maildir.Caller{UID: guest}, format.Origin{}).CreateMailbox(t.Context(), "eve"); err != nil {
		t.Fatal(err)
	}
	named := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b", ThreadID: "SECRET-1"})
	answer, err := p.Box("Bob", format.Origin{}).Reply(t.Context(), named.ID, maildir.Draft{Body: "b"})
	if err != nil {
		t.Fatal(err)
	}
	alone := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
	for _, tt := range []struct {
		name, box, id string
		refs          []string
		thread        string
		chain         string
	}{
		{"another's message", "eve", answer.ID, nil, "", answer.ID},
		{"another's message without a thread", "eve", alone.ID, nil, "", alone.ID},
		{"another's message as a reference", "eve", "1@example.org", []string{answer.ID}, "", answer.ID + " 1@example.org"},
		{"an unknown message", "eve", "1@example.org", nil, "1@example.org", "1@example.org"},
		{"neither sent nor received", "Cat", answer.ID, nil, "", answer.ID},
		{"received", "Ann", answer.ID, nil, "SECRET-1", named.ID + " " + answer.ID},
		{"sent", "Bob", answer.ID, nil, "SECRET-1", named.ID + " " + answer.ID},
		{"received without a thread", "Bob", alone.ID, nil, alone.ID, alone.ID},
		{"received as a reference", "Bob", "1@example.org", []string{alone.ID}, alone.ID, alone.ID + " 1@example.org"},
	} {
		uid := 500
		if tt.box == "eve" {
			uid = guest
		}
		b := openBox(t, p, tt.box, uid)
		m, err := b.Send(t.Context(), maildir.Draft{To: []string{tt.box}, Subject: "s", Body: "b", InReplyTo: tt.id, References: tt.refs})
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		for _, sent := range []bool{false, true} {
			l, err := b.Read(t.Context(), maildir.RawQuery{ID: m.ID, Sent: sent})
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if got := strings.Join(l.References, " "); l.ThreadID != tt.thread || m.ThreadID != tt.thread || got != tt.chain ||
				strings.Contains(string(l.Data), "SECRET-1") != (tt.thread == "SECRET-1") {
				t.Errorf("%s: thread %q, after %q; want %q, %q", tt.name, l.ThreadID, got, tt.thread, tt.chain)
			}
		}
	}
	b := openBox(t, p, "eve", guest)
	if _, err := b.Reply(t.Context(), answer.ID, maildir.Draft{Body: "b"}); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("a reply to another agent's message: %v", err)
	}
}
