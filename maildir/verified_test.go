package maildir_test

import (
	"os"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/keys"
)

// TestMachineSeal checks that mail sealed with another machine's trusted key is shown as verified by that machine. No
// copy may be trusted, because this server itself did not authenticate the sender.
func TestMachineSeal(t *testing.T) {
	t.Parallel()
	there := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	by := format.Origin{Auth: "uid:1000", Door: format.DoorPage} // only that machine knows that the sender is a user
	m := sendFrom(t, there.Box("Ann", by), maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "text"})
	key, err := keys.Own(maildir.StoreOf(there).Root)
	if err != nil {
		t.Fatal(err)
	}

	s := storetest.Open(t, ownedBy(1000))
	here, err := s.EnsureProject(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := here.Agents.Register(t.Context(), maildir.Registration{NameHint: "Bob"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(copyOf(there.Dir(), "agents/Bob/inbox", m))
	if err != nil {
		t.Fatal(err)
	}
	put(t, here, "agents/Bob/inbox/"+m.ID+".md", string(data))
	until(t, "the mail of the other machine is there", func() bool { return len(inbox(t, here, "Bob").Messages) == 1 })
	d := inbox(t, here, "Bob").Messages[0]
	if by, ok := maildir.StoreOf(here).Verified(&d.Message); ok {
		t.Errorf("verified before the key was trusted: %v", by)
	}

	key.Name = "laptop"
	if err := keys.Trust(s.Root(), key); err != nil {
		t.Fatal(err)
	}
	if by, ok := maildir.StoreOf(here).Verified(&d.Message); !ok || by.String() != "machine laptop, uid 1000 (program)" {
		t.Errorf("verified %v by %q", ok, by)
	}
	l, err := openBox(t, here, "Bob", 1000).Read(t.Context(), maildir.RawQuery{ID: m.ID})
	if err != nil {
		t.Fatal(err)
	}
	if l.Trust != maildir.Untrusted {
		t.Errorf("trust is %q", l.Trust)
	}
}

// TestPerson checks that the sender of verified mail is shown as a user only if this store's own seal proves that the
// mail came through a channel for users, such as the page.
func TestPerson(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann")
	for _, tt := range []struct {
		auth, door string
		terminal   bool
		want       string
	}{
		{"uid:1000", format.DoorPage, false, "person, uid 1000"},
		{"uid:1000", format.DoorCLI, true, "person, uid 1000"},
		{"uid:1000", format.DoorCLI, false, "uid 1000 (program)"},
		{"uid:1000", format.DoorStdio, true, "uid 1000 (program)"},
		{"uid:1000", "", false, "uid 1000 (program)"},
		{"token", format.DoorPage, false, "person, token"},
		{"token", format.DoorHTTP, false, "token"},
		{"none", format.DoorHTTP, false, keys.SelfAsserted},
		{"none", format.DoorPage, false, keys.SelfAsserted},
		{"dmarc:example.org", format.DoorGateway, false, "dmarc example.org"},
	} {
		by := format.Origin{Auth: tt.auth, Door: tt.door, Terminal: tt.terminal}
		m := sendFrom(t, p.Box("Ann", by), maildir.Draft{To: []string{"Ann"}, Body: "text"})
		d := inbox(t, p, "Ann").Messages[0]
		if by, ok := maildir.StoreOf(p).Verified(&d.Message); !ok || d.ID != m.ID || by.String() != tt.want {
			t.Errorf("%s through %q, terminal %v: verified %v by %q, want %q", tt.auth, tt.door, tt.terminal, ok, by, tt.want)
		}
	}
}

// TestSealOfOtherProject checks that mail that the server sealed for one project is not verified in another project.
func TestSealOfOtherProject(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	var both []*maildir.Project
	for _, key := range []string{"/abs/one", "/abs/two"} {
		p, err := s.EnsureProject(t.Context(), key)
		if err == nil {
			_, err = p.Agents.Register(t.Context(), maildir.Registration{NameHint: "Bob"})
		}
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, p)
	}
	m := send(t, both[0], "Bob", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "text"})
	data, err := os.ReadFile(copyOf(both[0].Dir(), "agents/Bob/inbox", m))
	if err != nil {
		t.Fatal(err)
	}
	put(t, both[1], "agents/Bob/inbox/"+m.ID+".md", string(data))
	until(t, "the copy is there", func() bool { return len(inbox(t, both[1], "Bob").Messages) == 1 })
	for i, want := range []bool{true, false} {
		if _, ok := s.VerifiedIn(&inbox(t, both[i], "Bob").Messages[0].MessageRow); ok != want {
			t.Errorf("project %d: verified %v", i, ok)
		}
	}
}
