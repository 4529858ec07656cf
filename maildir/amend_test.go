package maildir_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// TestAmend checks that the canonical file and the copies get the new text, and that each copy keeps its bcc
// recipient. A copy that was edited by hand must not be changed. Each agent that has read the message must get a
// separate notice, and an undo must restore the old text byte for byte.
func TestAmend(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	p := projectIn(t, s.Store, "Ann", "Bob", "Cat", "Dan")
	m := sendFrom(t, p.Box("Ann", format.Origin{Auth: "uid:1", Door: "http"}), maildir.Draft{
		To:      []string{"Bob", "Cat"},
		BCC:     []string{"Dan"},
		Subject: "Old",
		Body:    "zebra",
	})
	for _, agent := range []string{"Bob", "Dan"} {
		if _, err := p.Box(agent, format.Origin{}).Acknowledge(t.Context(), m.ID); err != nil {
			t.Fatal(err)
		}
	}
	edited, err := p.Box("Cat", format.Origin{}).Delivery(t.Context(), m.ID)
	if err != nil {
		t.Fatal(err)
	}
	edit(t, p.Dir(), "agents/Cat/inbox", m, "zebra", "horse")
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	files := filesOf(t, p, m.ID)
	was := contents(t, p, files)
	now, err := p.Amendable(t.Context(), m.ID)
	if err != nil || !strings.Contains(now.Text, "zebra") || strings.Contains(now.Text, "Dan") {
		t.Fatal(now, err)
	}
	change := maildir.Amendment{
		ID:      m.ID,
		Text:    strings.ReplaceAll(strings.ReplaceAll(now.Text, "zebra", "camel"), "Old", "New"),
		Version: now.Version,
	}
	a, err := p.Box("Ann", format.Origin{Auth: "uid:2", Door: "cli"}).Amend(t.Context(), change)
	if err != nil || !slices.Equal(a.Readers, []string{"Bob", "Dan"}) || !slices.Equal(a.Left, []string{edited.CopyPath}) {
		t.Fatalf("%+v, %v", a, err)
	}
	for path, is := range contents(t, p, files) {
		switch {
		case filepath.Ext(path) == ".md" && path != edited.CopyPath:
			if !strings.Contains(is, "camel") || !strings.Contains(is, `"uid:2"`) ||
				strings.Contains(is, `"bcc"`) != strings.Contains(was[path], `"bcc"`) {
				t.Errorf("%s says\n%s", path, is)
			}
		case is != was[path]:
			t.Errorf("%s was changed:\n%s", path, is)
		}
	}
	if got, err := p.Box("Dan", format.Origin{}).Delivery(t.Context(), m.ID); err != nil || got.Subject != "New" || !slices.Equal(got.BCC, []string{"Dan"}) {
		t.Errorf("%+v, %v", got, err)
	} else if _, ok := s.VerifiedIn(&got.MessageRow); !ok {
		t.Error("it is not verified")
	}
	for agent, want := range map[string]int{"Ann": 0, "Bob": 2, "Cat": 1, "Dan": 2} {
		got := slices.DeleteFunc(inbox(t, p, agent).Messages, func(d index.Delivery) bool {
			return agent == "Cat" && d.From == format.Postmaster // Postmaster reports the edited copy within seconds
		})
		if len(got) != want {
			t.Errorf("%s has %d messages, want %d", agent, len(got), want)
		}
	}
	var e *maildir.Error
	if _, err := p.Box("Ann", format.Origin{}).Amend(t.Context(), change); !errors.As(err, &e) || e.What != refusal.AmendedSince {
		t.Errorf("amended although the version is out of date: %v", err)
	}
	change.Version = ""
	if a, err := p.Box("Ann", format.Origin{Auth: "uid:2", Door: "cli"}).Amend(t.Context(), change); err != nil || !a.Same {
		t.Errorf("again: %+v, %v", a, err)
	}
	if u := undo(t, p, "Ann", m.ID); u.Operation != maildir.VerbAmend || len(u.Readers) != 2 {
		t.Errorf("%+v", u)
	}
	for path, is := range contents(t, p, files) {
		if is != was[path] {
			t.Errorf("%s now says\n%s", path, is)
		}
	}
}

// TestAmendAnothers checks that a message loses its seal when another agent amends it, and that the author gets a
// notice.
func TestAmendAnothers(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	p := projectIn(t, s.Store, "Ann", "Bob")
	m := sendFrom(t, p.Box("Ann", format.Origin{Auth: "uid:1", Door: "http"}), maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "zebra"})
	a, err := p.Box("Bob", format.Origin{Auth: "uid:2"}).Amend(t.Context(), maildir.Amendment{ID: m.ID, Text: "---json\n{}\n---\ncamel"})
	if err != nil || !slices.Equal(a.Readers, []string{"Ann"}) {
		t.Fatalf("%+v, %v", a, err)
	}
	got, err := p.Box("Bob", format.Origin{}).Delivery(t.Context(), m.ID)
	if err != nil || got.Subject != "s" || got.Auth != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, ok := s.VerifiedIn(&got.MessageRow); ok {
		t.Error("it is verified")
	}
	for _, text := range []string{"camel", "---json\n{\"from\": \"Bob\"}\n---\nx", "---json\n{\"importance\": \"x\"}\n---\nx", "---json\n{}\n---\n"} {
		if _, err := p.Box("Bob", format.Origin{}).Amend(t.Context(), maildir.Amendment{ID: m.ID, Text: text}); !errors.Is(err, maildir.ErrInvalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// contents returns the contents of files in the tree, by path.
func contents(t testing.TB, p *maildir.Project, paths []string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range paths {
		data, err := os.ReadFile(filepath.Join(p.Dir(), path))
		if err != nil {
			t.Fatal(err)
		}
		all[path] = string(data)
	}
	return all
}
