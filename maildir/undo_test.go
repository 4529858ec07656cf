package maildir_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	u, err := p.Box(agent, format.Origin{}).Undo(t.Context(), maildir.Undoing{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestUndoSend checks that undoing a send removes the message for everyone, and that each agent that has read it gets
// a separate notice.
func TestUndoSend(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "Cat", "Dan")
	kept := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "kept", Body: "b"})
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob", "Cat"}, BCC: []string{"Dan"}, Subject: "Wrong", Body: "b"})
	if _, err := p.Box("Bob", format.Origin{}).Acknowledge(t.Context(), m.ID); err != nil {
		t.Fatal(err)
	}
	if d, err := p.Box("Dan", format.Origin{}).Pop(t.Context()); err != nil || d.ID != m.ID {
		t.Fatal(d, err)
	}
	u := undo(t, p, "Ann", "")
	if u.Operation != "send" || u.ID != m.ID || !slices.Equal(u.Readers, []string{"Bob", "Dan"}) {
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
	if _, err := p.Box("Ann", format.Origin{}).Undo(t.Context(), maildir.Undoing{}); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("once more: %v", err)
	}
}

// TestUndoSendChanged checks that a message that was changed, with an editor or through mailtree, is not withdrawn.
// The undo must not change any of its files. If only a copy was removed, the message must still be withdrawn.
func TestUndoSendChanged(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	sent := func() (id, path string) {
		m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
		return m.ID, format.CanonicalPath(m.ID, m.Created)
	}
	refused := func(id, path string) {
		t.Helper()
		before := filesOf(t, p, id)
		u, err := p.Box("Ann", format.Origin{}).Undo(t.Context(), maildir.Undoing{ID: id})
		var e *maildir.Error
		if !errors.As(err, &e) || e.What != refusal.ChangedSince || e.Other != path || e.Why != "send" {
			t.Errorf("undone: %+v, %v", u, err)
		}
		if got := filesOf(t, p, id); !slices.Equal(got, before) {
			t.Errorf("left of %v: %v", before, got)
		}
	}
	id, path := sent()
	file := filepath.Join(p.Dir(), path)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(data, "more\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused(id, path)

	id, path = sent()
	now, err := p.Amendable(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Box("Bob", format.Origin{}).Amend(t.Context(), maildir.Amendment{ID: id, Text: now.Text + "more\n"}); err != nil {
		t.Fatal(err)
	}
	refused(id, filepath.Join("agents/Ann/outbox", strings.TrimPrefix(path, "messages/")))

	id, path = sent()
	if err := os.Remove(filepath.Join(p.Dir(), "agents/Bob/inbox", strings.TrimPrefix(path, "messages/"))); err != nil {
		t.Fatal(err)
	}
	if u := undo(t, p, "Ann", id); u.Operation != "send" || len(filesOf(t, p, id)) > 0 {
		t.Errorf("%+v leaves %v", u, filesOf(t, p, id))
	}
}

// TestUndoClaim checks that undoing a claim releases only the paths of that operation, and that undoing a release
// claims the paths again, unless another agent holds them. The next undo must withdraw the message that was sent
// before the claim.
func TestUndoClaim(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
	claimFor := func(agent string, ttl time.Duration, patterns ...string) {
		t.Helper()
		r, err := p.Box(agent, format.Origin{}).Claim(t.Context(), claim.Request{Patterns: patterns, TTL: ttl})
		if err != nil || len(r.Conflicts) > 0 {
			t.Fatal(r, err)
		}
		if err := p.FlushHistory(t.Context()); err != nil { // gives each operation its own commit
			t.Fatal(err)
		}
	}
	release := func(patterns ...string) {
		t.Helper()
		if _, err := p.Box("Ann", format.Origin{}).Release(t.Context(), patterns); err != nil {
			t.Fatal(err)
		}
	}
	held := func(want ...string) { t.Helper(); wantHeld(t, p, want) }
	claimFor("Ann", time.Hour, "old.go")
	claimFor("Ann", time.Hour, "a.go", "b/**")
	if u := undo(t, p, "Ann", ""); u.Operation != "claim" || !slices.Equal(u.Patterns, []string{"a.go", "b/**"}) {
		t.Errorf("%+v", u)
	}
	held("Ann old.go")
	release("old.go")
	held()
	if u := undo(t, p, "Ann", ""); u.Operation != "release" || !slices.Equal(u.Patterns, []string{"old.go"}) {
		t.Errorf("%+v", u)
	}
	held("Ann old.go")
	claimFor("Ann", 2*time.Hour, "old.go")
	if u := undo(t, p, "Ann", ""); u.Operation != "renew" {
		t.Errorf("%+v", u)
	}
	if all, err := p.Claims.List(t.Context(), false); err != nil || time.Until(all[0].Expires) > 90*time.Minute {
		t.Errorf("%+v, %v", all, err)
	}
	release("old.go")
	claimFor("Bob", time.Hour, "*.go")
	var e *maildir.Error
	_, err := p.Box("Ann", format.Origin{}).Undo(t.Context(), maildir.Undoing{})
	if !errors.As(err, &e) || e.What != refusal.ClaimTaken || e.Other != "Bob" {
		t.Errorf("of another's: %v", err)
	}
	held("Bob *.go")
	if u := undo(t, p, "Ann", m.ID); u.Operation != "send" {
		t.Errorf("%+v", u)
	}
}

// TestUndoClaims checks that operations on claims are not undone if they share a commit, because the commit does not
// show which operation wrote which file.
func TestUndoClaims(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann")
	lock := filepath.Join(p.Dir(), ".git", "index.lock") // as if a slow git command made many operations wait
	for ; ; time.Sleep(time.Millisecond) {               // the server may hold the lock to commit the registration
		f, err := os.OpenFile(lock, os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			f.Close()
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	ann := p.Box("Ann", format.Origin{})
	for i := range 40 { // too many operations for one commit each
		if _, err := ann.Claim(t.Context(), claim.Request{Patterns: []string{fmt.Sprint(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := p.FlushHistory(ctx); err == nil { // waits for the end of the round that began before the last claim
		t.Fatal("there was a commit despite a lock")
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	_, err := ann.Undo(t.Context(), maildir.Undoing{})
	if e := (*maildir.Error)(nil); !errors.As(err, &e) || e.What != refusal.NotUndone || e.Why != "claim" {
		t.Errorf("an operation that shares its commit was undone: %v", err)
	}
}

// TestUndoMarks checks that undo returns an archived message to the inbox with its earlier read state, and restores a
// deleted message with its marks. Other operations in the same commit must not be undone.
func TestUndoMarks(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	var all []string
	for range 40 { // too many operations for one commit each
		m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
		all = append(all, m.ID)
	}
	for _, id := range all {
		if _, err := p.Box("Bob", format.Origin{}).Archive(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	u := undo(t, p, "Bob", all[7])
	d, err := p.Box("Bob", format.Origin{}).Delivery(t.Context(), all[7])
	if u.Operation != "archive" || err != nil || d.Archived || d.Read {
		t.Errorf("%+v, %+v, %v", u, d, err)
	}
	if page := inbox(t, p, "Bob"); page.Archived != len(all)-1 {
		t.Errorf("%+v", page.Counts)
	}
	before := filesOf(t, p, all[8])
	if _, err := p.Box("Bob", format.Origin{}).Delete(t.Context(), all[8]); err != nil {
		t.Fatal(err)
	}
	if u = undo(t, p, "Bob", all[8][len("msg_20060102_"):]); u.Operation != "delete" || !slices.Equal(filesOf(t, p, all[8]), before) {
		t.Errorf("%+v restores %v, not %v", u, filesOf(t, p, all[8]), before)
	}
	if d, err = p.Box("Bob", format.Origin{}).Delivery(t.Context(), all[8]); err != nil || !d.Archived {
		t.Errorf("%+v, %v", d, err)
	}
	mark := filepath.Join(p.Dir(), format.ArchivedMark(d.CopyPath))
	if err := os.WriteFile(mark, []byte("2025-10-23T15:22:14Z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Box("Bob", format.Origin{}).Undo(t.Context(), maildir.Undoing{ID: all[8]}); !errors.Is(err, maildir.ErrConflict) {
		t.Errorf("a mark that was edited: %v", err)
	}
}
