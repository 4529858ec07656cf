package maildir_test

import (
	"os"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
)

// TestMachineSeal: mail that another trusted key sealed is verified under that machine's name, but what its server found out
// about the sender is not what this one did: it makes no copy trusted.
func TestMachineSeal(t *testing.T) {
	t.Parallel()
	there := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	m := send(t, there, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "text", Auth: "uid:1000"})
	key, err := maildir.PublicKey(maildir.StoreOf(there).Root())
	if err != nil {
		t.Fatal(err)
	}

	s := storetest.Open(t, ownedBy(1000))
	here, err := s.EnsureProject(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := here.Register(t.Context(), maildir.Registration{NameHint: "Bob"}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(copyOf(there.Tree().Dir(), "agents/Bob/inbox", m))
	if err != nil {
		t.Fatal(err)
	}
	put(t, here, "agents/Bob/inbox/"+m.ID+".md", string(data))
	until(t, "the mail of the other machine is there", func() bool { return len(inbox(t, here, "Bob").Messages) == 1 })
	d := inbox(t, here, "Bob").Messages[0]
	if by, ok := s.Verified(&d.Message); ok {
		t.Errorf("verified before the key is trusted: %v", by)
	}

	key.Name = "laptop"
	if err := maildir.Trust(s.Root(), key); err != nil {
		t.Fatal(err)
	}
	if by, ok := s.Verified(&d.Message); !ok || by.String() != "machine laptop, uid:1000" {
		t.Errorf("verified %v by %q", ok, by)
	}
	l, err := openBox(t, here, "Bob", 1000).Read(t.Context(), maildir.LetterQuery{ID: m.ID})
	if err != nil {
		t.Fatal(err)
	}
	if l.Trust != maildir.Untrusted {
		t.Errorf("trust is %q", l.Trust)
	}
}

// BenchmarkVerified is what the seals of an inbox page of twenty messages cost, the first time and then.
func BenchmarkVerified(b *testing.B) {
	p := project(b, storetest.Config{NoWatcher: true}, "Ann")
	for range 20 {
		send(b, p, maildir.Draft{From: "Ann", To: []string{"Ann"}, Subject: "s", Body: "text"})
	}
	page, store := inbox(b, p, "Ann").Messages, maildir.StoreOf(p)
	check := func(b *testing.B, forget bool) {
		for b.Loop() {
			if forget {
				store.ForgetVerified()
			}
			for i := range page {
				if _, ok := store.Verified(&page[i].Message); !ok {
					b.Fatal("not verified")
				}
			}
		}
	}
	b.Run("first", func(b *testing.B) { check(b, true) })
	b.Run("again", func(b *testing.B) { check(b, false) })
}
