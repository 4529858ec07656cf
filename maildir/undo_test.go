package maildir_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

func undo(t testing.TB, p *maildir.Project, agent, id string) *maildir.Undone {
	t.Helper()
	u, err := p.Undo(t.Context(), maildir.Undoing{Agent: agent, ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestUndoSend: the message is gone for everybody, and each who had read it is told, alone.
func TestUndoSend(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "Cat", "Dan")
	kept := send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "kept", Body: "b"})
	m := send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob", "Cat"}, BCC: []string{"Dan"}, Subject: "Wrong", Body: "b"})
	if _, err := p.Acknowledge(t.Context(), "Bob", m.ID); err != nil {
		t.Fatal(err)
	}
	if d, err := p.Pop(t.Context(), "Dan"); err != nil || d.ID != m.ID {
		t.Fatal(d, err)
	}
	u := undo(t, p, "Ann", "")
	if u.Verb != "send" || u.ID != m.ID || !slices.Equal(u.Readers, []string{"Bob", "Dan"}) {
		t.Errorf("%+v", u)
	}
	for _, path := range filesOf(t, p, m.ID) {
		t.Error("left:", path)
	}
	for agent, want := range map[string]string{"Bob": "Withdrawn: Wrong kept", "Dan": "Withdrawn: Wrong", "Cat": ""} {
		var got []string
		for _, d := range inbox(t, p, agent).Messages {
			got = append(got, d.Subject)
			if d.ID != kept.ID && !slices.Equal(d.BCC, []string{agent}) {
				t.Errorf("%s sees %v", agent, d.BCC)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s has %q", agent, got)
		}
	}
	if u = undo(t, p, "Ann", ""); u.ID != kept.ID || len(u.Readers) > 0 {
		t.Errorf("again: %+v", u)
	}
	if _, err := p.Undo(t.Context(), maildir.Undoing{Agent: "Ann"}); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("once more: %v", err)
	}
}

// TestUndoClaim: after a claim no message is taken back that nobody means, unless it is named.
func TestUndoClaim(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	m := send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "b"})
	if _, err := p.Claim(t.Context(), claim.Request{Agent: "Ann", Patterns: []string{"a.go"}, TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	var e *maildir.Error
	if u, err := p.Undo(t.Context(), maildir.Undoing{Agent: "Ann"}); !errors.As(err, &e) || e.What != refusal.NotUndone || e.Why != "claim" {
		t.Errorf("undone: %+v, %v", u, err)
	}
	if u := undo(t, p, "Ann", m.ID); u.Verb != "send" {
		t.Errorf("undone: %+v", u)
	}
}

// TestUndoMarks: what was archived is in the inbox again, read as it was before; what was deleted
// is there again with its marks. Of operations that share a commit the others stay.
func TestUndoMarks(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	var all []string
	for range 40 { // more than have a commit each
		m := send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "b"})
		all = append(all, m.ID)
	}
	for _, id := range all {
		if _, err := p.Archive(t.Context(), "Bob", id); err != nil {
			t.Fatal(err)
		}
	}
	u := undo(t, p, "Bob", all[7])
	d, err := p.Delivery(t.Context(), "Bob", all[7])
	if u.Verb != "archive" || err != nil || d.Archived || d.Read {
		t.Errorf("%+v, %+v, %v", u, d, err)
	}
	if page := inbox(t, p, "Bob"); page.Archived != len(all)-1 {
		t.Errorf("%+v", page.Counts)
	}
	before := filesOf(t, p, all[8])
	if _, err := p.Delete(t.Context(), "Bob", all[8]); err != nil {
		t.Fatal(err)
	}
	if u = undo(t, p, "Bob", ""); u.Verb != "delete" || !slices.Equal(filesOf(t, p, all[8]), before) {
		t.Errorf("%+v restores %v, not %v", u, filesOf(t, p, all[8]), before)
	}
	if d, err = p.Delivery(t.Context(), "Bob", all[8]); err != nil || !d.Archived {
		t.Errorf("%+v, %v", d, err)
	}
	mark := filepath.Join(p.Tree().Dir(), format.ArchivedMark(d.CopyPath))
	if err := os.WriteFile(mark, []byte("2025-10-23T15:22:14Z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Undo(t.Context(), maildir.Undoing{Agent: "Bob", ID: all[8]}); !errors.Is(err, maildir.ErrConflict) {
		t.Errorf("a mark that was edited: %v", err)
	}
}
