package maildir_test

import (
	"errors"
	"slices"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
)

// TestFree checks that the history names the agent that released another agent's claim. That agent must be able to undo
// the release together with the message about it. If the holder has read the message, the holder must get a notice
// about the undo.
func TestFree(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{}).Store
	p := projectIn(t, s, "Ann", "Bob")
	if _, err := p.Box("Bob", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"a.go", "b.go"}}); err != nil {
		t.Fatal(err)
	}
	free := func() string {
		t.Helper()
		m, err := p.Box("Ann", format.Origin{}).Free(t.Context(), maildir.Freeing{
			Holder:  "Bob",
			Pattern: "a.go",
			Reason:  "I need it.",
		})
		if err != nil || m == nil || m.From != "Ann" || m.Body != "I need it." {
			t.Fatal(m, err)
		}
		return m.ID
	}
	held := func(want ...string) { t.Helper(); wantHeld(t, p, want) }
	notice := free()
	held("Bob b.go")
	last := ""
	if err := p.Log(t.Context(), maildir.LogQuery{Of: "claims", Limit: 1}, func(e *history.Entry) error {
		last = e.Who + " " + e.Verb + " " + e.ID
		return nil
	}); err != nil || last != "Ann release "+notice {
		t.Errorf("the history says %q, %v", last, err)
	}
	m, err := p.Box("Ann", format.Origin{}).Free(t.Context(), maildir.Freeing{Holder: "Bob", Pattern: "a.go"})
	if m != nil || err != nil {
		t.Errorf("once more: %+v, %v", m, err)
	}
	u := undo(t, p, "Ann", "")
	if u.Operation != history.VerbRelease || u.ID != notice || !slices.Equal(u.Patterns, []string{"a.go"}) || len(u.Readers) > 0 {
		t.Errorf("%+v", u)
	}
	held("Bob a.go", "Bob b.go")
	if got := inbox(t, p, "Bob").Messages; len(got) > 0 {
		t.Errorf("Bob has %+v", got)
	}

	notice = free()
	if d, err := p.Box("Bob", format.Origin{}).Pop(t.Context()); err != nil || d.ID != notice {
		t.Fatal(d, err)
	}
	if u = undo(t, p, "Ann", notice); !slices.Equal(u.Readers, []string{"Bob"}) {
		t.Errorf("%+v", u)
	}
	held("Bob a.go", "Bob b.go")
	if got := inbox(t, p, "Bob").Messages; len(got) != 1 || got[0].Subject != "Withdrawn: Your claim on a.go was released" {
		t.Errorf("Bob has %+v", got)
	}
	if _, err := p.Box("Ann", format.Origin{}).Undo(t.Context(), maildir.Undoing{}); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("and before: %v", err)
	}

	free()
	var happened []maildir.Event
	enough := errors.New("enough")
	err = s.Watch(t.Context(), p, 0, func(h *maildir.Event) error {
		if happened = append(happened, *h); h.What == maildir.HappenedRelease && h.Agent == "Ann" && h.Text == "a.go" {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("the events were %+v; %v", happened, err)
	}
}

// TestClaimAgain checks that if a path is claimed again after a release, it is reported as claimed, not as released.
func TestClaimAgain(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{}).Store
	p := projectIn(t, s, "Ann")
	hold := func(path string) {
		t.Helper()
		if _, err := p.Box("Ann", format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{path}}); err != nil {
			t.Fatal(err)
		}
	}
	release := func() {
		t.Helper()
		if _, err := p.Box("Ann", format.Origin{}).Release(t.Context(), []string{"a.go"}); err != nil {
			t.Fatal(err)
		}
	}
	hold("a.go")
	release()
	hold("a.go")
	hold("end.go")
	var last string
	enough := errors.New("enough")
	err := s.Watch(t.Context(), p, 0, func(h *maildir.Event) error {
		if h.Text == "end.go" {
			return enough
		}
		if h.Text == "a.go" {
			last = h.What
		}
		return nil
	})
	if !errors.Is(err, enough) || last != maildir.HappenedClaim {
		t.Errorf("the last event was %q, %v", last, err)
	}
}
