package maildir_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

func redo(t testing.TB, p *maildir.Project, agent, id string) *maildir.Undone {
	t.Helper()
	u, err := p.Box(agent, format.Origin{}).Redo(t.Context(), maildir.Undoing{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// bytesOf returns the contents of a message's files, by path.
func bytesOf(t testing.TB, p *maildir.Project, id string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range filesOf(t, p, id) {
		data, err := os.ReadFile(filepath.Join(p.Dir(), path))
		if err != nil {
			t.Fatal(err)
		}
		all[path] = string(data)
	}
	return all
}

// TestUndoReading checks that marking a message as read or unread is undone only if the caller specifies the message,
// and is not listed as an undoable operation.
func TestUndoReading(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	got := send(t, p, "Bob", maildir.Draft{To: []string{"Ann"}, Subject: "got", Body: "b"})
	unread := send(t, p, "Bob", maildir.Draft{To: []string{"Ann"}, Subject: "unread", Body: "b"})
	ann := p.Box("Ann", format.Origin{})
	first := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "first", Body: "b"})
	second := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "second", Body: "b"})
	for _, read := range []bool{true, false} {
		if _, err := ann.SetRead(t.Context(), unread.ID, read); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ann.SetRead(t.Context(), got.ID, true); err != nil {
		t.Fatal(err)
	}
	acts, err := ann.Undoable(t.Context(), 9)
	if err != nil || len(acts) != 2 || acts[0].ID != second.ID || acts[0].About != "second" || acts[1].ID != first.ID {
		t.Errorf("%+v, %v", acts, err)
	}
	if acts, err := ann.Undoable(t.Context(), 1); err != nil || len(acts) != 1 || acts[0].Operation != "send" {
		t.Errorf("%+v, %v", acts, err)
	}
	u := undo(t, p, "Ann", "")
	if u.ID != second.ID || u.About != "second" {
		t.Errorf("%+v", u)
	}
	if _, path, _ := strings.Cut(u.Text, ":"); path != format.CanonicalPath(second.ID, second.Created) {
		t.Errorf("the text is at %s", u.Text)
	}
	if u := undo(t, p, "Ann", got.ID); u.Operation != "read" || u.Text != "" {
		t.Errorf("%+v", u)
	}
	if d, err := ann.Delivery(t.Context(), got.ID); err != nil || d.Read {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestRedo checks that operations are redone in the reverse order of their undos. The files of a message must be the
// same as before the undo, and agents that got a notice about the withdrawal must get another notice. After the redo,
// it must be possible to undo the operation again.
func TestRedo(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "Cat")
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, BCC: []string{"Cat"}, Subject: "Plan", Body: "b"})
	for _, agent := range []string{"Bob", "Cat"} {
		if _, err := p.Box(agent, format.Origin{}).SetRead(t.Context(), m.ID, true); err != nil {
			t.Fatal(err)
		}
	}
	gone := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "gone", Body: "b"})
	if _, err := p.Box("Ann", format.Origin{}).Delete(t.Context(), gone.ID); err != nil {
		t.Fatal(err)
	}
	undo(t, p, "Ann", "")
	was, wasGone := bytesOf(t, p, m.ID), bytesOf(t, p, gone.ID)
	undo(t, p, "Ann", gone.ID)
	undo(t, p, "Ann", m.ID)
	u := redo(t, p, "Ann", "")
	if u.Operation != "send" || u.ID != m.ID || u.About != "Plan" || !slices.Equal(u.Readers, []string{"Bob", "Cat"}) {
		t.Errorf("%+v", u)
	}
	if is := bytesOf(t, p, m.ID); len(is) != 6 || !maps.Equal(is, was) {
		t.Errorf("%v\nwas %v", is, was)
	}
	for _, agent := range []string{"Bob", "Cat"} {
		d := inbox(t, p, agent).Messages[0]
		if d.Subject != "Sent again: Plan" || d.InReplyTo != m.ID || !slices.Equal(d.BCC, []string{agent}) {
			t.Errorf("%s got the notices %+v", agent, d)
		}
	}
	if u := redo(t, p, "Ann", ""); u.Operation != "send" || u.ID != gone.ID || len(u.Readers) > 0 {
		t.Errorf("%+v", u)
	}
	if is := bytesOf(t, p, gone.ID); !maps.Equal(is, wasGone) {
		t.Errorf("%v\nwas %v", is, wasGone)
	}
	if u := redo(t, p, "Ann", ""); u.Operation != "delete" || u.ID != gone.ID || len(filesOf(t, p, gone.ID)) > 0 {
		t.Errorf("%+v leaves %v", u, filesOf(t, p, gone.ID))
	}
	if _, err := p.Box("Ann", format.Origin{}).Redo(t.Context(), maildir.Undoing{}); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("once more: %v", err)
	}
	if u := undo(t, p, "Ann", ""); u.Operation != "delete" {
		t.Errorf("%+v", u)
	}
	if u := undo(t, p, "Ann", m.ID); u.Operation != "send" || len(filesOf(t, p, m.ID)) > 0 {
		t.Errorf("%+v leaves %v", u, filesOf(t, p, m.ID))
	}
}

// TestRedoEnds checks that after a newer operation, earlier undos can no longer be redone, as in any editor. An
// operation that only marks a message as read or unread does not count as newer. Undos after the newer operation can be
// redone, and each redo must report what the next redo would do.
func TestRedoEnds(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	ann := p.Box("Ann", format.Origin{})
	subjects := func(subject ...string) (ids []string) {
		for _, s := range subject {
			ids = append(ids, send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: s, Body: "b"}).ID)
		}
		return ids
	}
	refused := func(what string, u maildir.Undoing) {
		t.Helper()
		if got, err := ann.Redo(t.Context(), u); !errors.Is(err, maildir.ErrNotFound) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	got := send(t, p, "Bob", maildir.Draft{To: []string{"Ann"}, Subject: "got", Body: "b"})
	old := subjects("old")
	undo(t, p, "Ann", "")
	ids := subjects("one", "two", "three")
	refused("past newer work", maildir.Undoing{})
	for range ids {
		undo(t, p, "Ann", "")
	}
	if _, err := ann.SetRead(t.Context(), got.ID, true); err != nil {
		t.Fatal(err)
	}
	if u := redo(t, p, "Ann", ""); u.ID != ids[0] || u.Next == nil || u.Next.About != "two" {
		t.Errorf("%+v", u)
	}
	if u := redo(t, p, "Ann", ""); u.ID != ids[1] || u.Next == nil || u.Next.About != "three" {
		t.Errorf("%+v", u)
	}
	if u := redo(t, p, "Ann", ""); u.ID != ids[2] || u.Next != nil {
		t.Errorf("%+v", u)
	}
	refused("everything is redone except what the newer work made final", maildir.Undoing{})
	if u := redo(t, p, "Ann", old[0]); u.ID != old[0] {
		t.Errorf("a named message without a newer operation: %+v", u)
	}
	undo(t, p, "Ann", old[0])
	if _, err := ann.Archive(t.Context(), got.ID); err != nil {
		t.Fatal(err)
	}
	undo(t, p, "Ann", got.ID)
	if _, err := ann.Acknowledge(t.Context(), got.ID); err != nil {
		t.Fatal(err)
	}
	refused("newer work on the message that is named", maildir.Undoing{ID: got.ID})
}

// TestSteps checks that one undo undoes every operation of a step, including those that only mark a message as read,
// and that one redo redoes them all. If the caller specifies a message, only the operation on that message must be
// undone.
func TestSteps(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	bob := p.Box("Bob", format.Origin{})
	var ids []string
	for _, d := range []maildir.Draft{{Subject: "one"}, {Subject: "two", AckRequired: true}, {Subject: "three"}} {
		d.To, d.Body, d.ThreadID = []string{"Bob"}, "b", "T-1"
		ids = append(ids, send(t, p, "Ann", d).ID)
	}
	marks := func() (made []string) {
		for i, id := range ids {
			d, err := bob.Delivery(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if d.Read {
				made = append(made, fmt.Sprint(i, d.Acked, d.Archived))
			}
		}
		return made
	}
	is := func(what string, want ...string) {
		t.Helper()
		if got := marks(); !slices.Equal(got, want) {
			t.Errorf("%s: %q", what, got)
		}
	}
	finished := format.InStep(t.Context(), format.NewStep())
	for _, do := range []func() (*index.Delivery, error){
		func() (*index.Delivery, error) { return bob.SetRead(finished, ids[0], true) },
		func() (*index.Delivery, error) { return bob.Acknowledge(finished, ids[1]) },
		func() (*index.Delivery, error) { return bob.SetRead(finished, ids[2], true) },
	} {
		if _, err := do(); err != nil {
			t.Fatal(err)
		}
	}
	is("finished", "0 false false", "1 true false", "2 false false")
	acts, err := bob.Undoable(t.Context(), 9)
	if err != nil || len(acts) != 1 || acts[0].More != 2 {
		t.Errorf("%+v, %v", acts, err)
	}
	u := undo(t, p, "Bob", "")
	is("undone")
	if len(u.Also) != 2 || u.ID != ids[2] || u.Also[0].Operation != "acknowledge" || u.Also[1].ID != ids[0] {
		t.Errorf("%+v", u)
	}
	if u := redo(t, p, "Bob", ""); len(u.Also) != 2 {
		t.Errorf("%+v", u)
	}
	is("redone", "0 false false", "1 true false", "2 false false")
	undo(t, p, "Bob", ids[0])
	is("one operation undone", "1 true false", "2 false false")
	if u := undo(t, p, "Bob", ""); len(u.Also) != 1 {
		t.Errorf("%+v", u)
	}
	is("the other operations undone")

	ctx := format.InStep(t.Context(), format.NewStep())
	for _, id := range ids {
		if _, err := bob.Archive(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bob.SetRead(t.Context(), ids[1], false); err != nil { // causes the undo to be refused
		t.Fatal(err)
	}
	if _, err := bob.Undo(t.Context(), maildir.Undoing{}); !errors.Is(err, maildir.ErrConflict) ||
		!strings.Contains(err.Error(), "1 of the command's 3 operations were undone.") {
		t.Error(err)
	}
}

// TestUndoRedoing checks that redone operations can be undone again, the last redo first, and that the files are then
// the same as before the redo.
func TestUndoRedoing(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	ann, bob := p.Box("Ann", format.Origin{}), p.Box("Bob", format.Origin{})
	one := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "one", Body: "b"}).ID
	undo(t, p, "Ann", "")
	two := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "two", Body: "b"}).ID
	redo(t, p, "Ann", one)
	acts, err := ann.Undoable(t.Context(), 9)
	if err != nil || len(acts) != 2 || acts[0].ID != one || acts[0].About != "one" || acts[1].ID != two {
		t.Errorf("%+v, %v", acts, err)
	}
	if u := undo(t, p, "Ann", ""); u.ID != one || u.Next == nil || u.Next.ID != two {
		t.Errorf("%+v", u)
	}
	if _, err := ann.Delete(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	undo(t, p, "Ann", "")
	if _, err := bob.Acknowledge(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	if _, err := bob.Amend(t.Context(), maildir.Amendment{ID: two, Text: "---json\n{}\n---\nchanged\n"}); err != nil {
		t.Fatal(err)
	}
	was := bytesOf(t, p, two)
	if u := redo(t, p, "Ann", ""); u.Operation != "delete" || len(u.Readers) > 0 {
		t.Errorf("%+v, but nobody had got a notice", u)
	}
	if u := undo(t, p, "Ann", ""); u.Operation != "delete" || !maps.Equal(bytesOf(t, p, two), was) {
		t.Errorf("%+v leaves %v; before, the files were %v", u, bytesOf(t, p, two), was)
	}
}

// TestRedoSendRefused checks that a message is not sent again if another message with the same key has been sent since.
// The same applies if a recipient has been removed, because the recipient's folder would be recreated without a
// profile.
func TestRedoSendRefused(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "Cat")
	refused := func(id string) *maildir.Error {
		t.Helper()
		var e *maildir.Error
		if _, err := p.Box("Ann", format.Origin{}).Redo(t.Context(), maildir.Undoing{ID: id}); !errors.As(err, &e) {
			t.Fatalf("redone: %v", err)
		}
		if left := filesOf(t, p, id); len(left) > 0 {
			t.Errorf("there is %v", left)
		}
		return e
	}
	keyed := maildir.Draft{To: []string{"Bob"}, BCC: []string{"Cat"}, Subject: "keyed", Body: "b", Key: "k"}
	first := send(t, p, "Ann", keyed).ID
	undo(t, p, "Ann", first)
	second := send(t, p, "Ann", keyed).ID
	if e := refused(first); e.ID != second || !errors.Is(e, maildir.ErrConflict) {
		t.Error(e)
	}
	undo(t, p, "Ann", second)
	redo(t, p, "Ann", first)
	undo(t, p, "Ann", first)
	if err := os.RemoveAll(filepath.Join(p.Dir(), "agents/Cat")); err != nil {
		t.Fatal(err)
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := refused(first); e.Name != "Cat" || !errors.Is(e, maildir.ErrNotFound) {
		t.Error(e)
	}
}

// TestRedoEdit checks that an edit is redone unless the message has changed since.
func TestRedoEdit(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "Plan", Body: "b"})
	amend := func(agent, body string) {
		t.Helper()
		if _, err := p.Box(agent, format.Origin{}).Amend(t.Context(), maildir.Amendment{ID: m.ID, Text: "---json\n{}\n---\n" + body}); err != nil {
			t.Fatal(err)
		}
	}
	amend("Ann", "changed\n")
	was := bytesOf(t, p, m.ID)
	u := undo(t, p, "Ann", "")
	commit, path, _ := strings.Cut(u.Text, ":")
	if u.Operation != "amend" || len(commit) != 40 || path != format.CanonicalPath(m.ID, m.Created) {
		t.Errorf("%+v", u)
	}
	if u := redo(t, p, "Ann", m.ID); u.Operation != "amend" || !maps.Equal(bytesOf(t, p, m.ID), was) {
		t.Errorf("%+v leaves %v", u, bytesOf(t, p, m.ID))
	}
	undo(t, p, "Ann", "")
	amend("Bob", "otherwise\n")
	_, err := p.Box("Ann", format.Origin{}).Redo(t.Context(), maildir.Undoing{})
	if e := (*maildir.Error)(nil); !errors.As(err, &e) || e.What != refusal.ChangedSinceUndone || e.Why != "amend" {
		t.Errorf("redone: %v", err)
	}
}

// TestRedoClaim checks that a claim is not redone, because another agent may now hold the paths. A release can be
// redone. So can the release of another agent's claim, together with the message about it.
func TestRedoClaim(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	ann, bob := p.Box("Ann", format.Origin{}), p.Box("Bob", format.Origin{})
	claimFor := func(b *maildir.Box, pattern string) {
		t.Helper()
		if _, err := b.Claim(t.Context(), claim.Request{Patterns: []string{pattern}}); err != nil {
			t.Fatal(err)
		}
		if err := p.FlushHistory(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	claimFor(ann, "a.go")
	undo(t, p, "Ann", "")
	_, err := ann.Redo(t.Context(), maildir.Undoing{})
	if e := (*maildir.Error)(nil); !errors.As(err, &e) || !errors.Is(err, maildir.ErrConflict) || e.Name != "a.go" || e.Why != "claim" {
		t.Errorf("redone: %v", err)
	}
	wantHeld(t, p, nil)
	claimFor(ann, "b.go")
	if _, err := ann.Release(t.Context(), []string{"b.go"}); err != nil {
		t.Fatal(err)
	}
	undo(t, p, "Ann", "")
	wantHeld(t, p, []string{"Ann b.go"})
	if u := redo(t, p, "Ann", ""); u.Operation != "release" || !slices.Equal(u.Patterns, []string{"b.go"}) {
		t.Errorf("%+v", u)
	}
	wantHeld(t, p, nil)
	claimFor(bob, "c.go")
	notice, err := ann.Free(t.Context(), maildir.Freeing{Holder: "Bob", Pattern: "c.go"})
	if err != nil {
		t.Fatal(err)
	}
	undo(t, p, "Ann", "")
	wantHeld(t, p, []string{"Bob c.go"})
	if u := redo(t, p, "Ann", ""); u.Operation != "release" || u.ID != notice.ID || u.About != "c.go of Bob" {
		t.Errorf("%+v", u)
	}
	wantHeld(t, p, nil)
	if _, err := bob.Delivery(t.Context(), notice.ID); err != nil {
		t.Error(err)
	}
	undo(t, p, "Ann", "")
	wantHeld(t, p, []string{"Bob c.go"})
}
