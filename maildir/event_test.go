package maildir_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
)

// TestEvents: each query finds what it asks for, of its project and agent alone, once.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	p, err := s.EnsureProject(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.EnsureProject(t.Context(), "/abs/path/other")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"Ann", "Bob", "Eve"} {
		for _, in := range []*maildir.Project{p, other} {
			if err := in.EnsureAgent(t.Context(), n, maildir.Registration{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	queries := map[string]maildir.EventQuery{
		"mail of Bob":   {What: format.KindInbox, Agent: "Bob"},
		"mail of Eve":   {What: format.KindInbox, Agent: "Eve"},
		"claims":        {What: format.KindClaim},
		"claims of Bob": {What: format.KindClaim, Agent: "Bob"},
		"statuses":      {What: format.KindStatus},
	}
	marks := map[string]int64{}
	for name, q := range queries {
		q.After = maildir.FromNow
		page, err := p.Events(t.Context(), q)
		if err != nil || len(page.Events) > 0 || page.Missed {
			t.Fatalf("%s, from now: %+v (%v)", name, page, err)
		}
		marks[name] = page.Mark
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, BCC: []string{"Eve"}, Subject: "one"})
	send(t, other, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "elsewhere"})
	_, err = p.Claim(t.Context(), claim.Request{Agent: "Bob", Patterns: []string{"a.go"}})
	must(err)
	_, err = p.Claim(t.Context(), claim.Request{Agent: "Ann", Patterns: []string{"b.go"}})
	must(err)
	_, err = p.Release(t.Context(), "Bob", nil)
	must(err)
	must(p.SetPresence(t.Context(), "Ann", format.Ready))
	want := map[string][]string{
		"mail of Bob":   {"Bob: one"},
		"mail of Eve":   {"Eve: one"},
		"claims":        {"Bob: a.go, released", "Ann: b.go", "Bob: a.go, released"},
		"claims of Bob": {"Bob: a.go, released", "Bob: a.go, released"},
		"statuses":      {"Ann: ready"},
	}
	for name, q := range queries {
		q.After, q.Limit = marks[name], 1
		var got []string
		for more := true; more; {
			page, err := p.Events(t.Context(), q)
			must(err)
			for _, e := range page.Events {
				got = append(got, toldEvent(&e))
			}
			q.After, more = page.Mark, page.More
		}
		if diff := cmp.Diff(want[name], got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := p.Events(t.Context(), maildir.EventQuery{What: format.KindInbox}); err == nil {
		t.Error("everybody's mail was told")
	}
}

func toldEvent(e *maildir.Event) string {
	switch {
	case e.Mail != nil:
		return e.Agent + ": " + e.Mail.Subject
	case e.Claim != nil && e.Claim.Released:
		return fmt.Sprintf("%s: %s, released", e.Agent, e.Claim.Pattern)
	case e.Claim != nil:
		return e.Agent + ": " + e.Claim.Pattern
	}
	return e.Agent + ": " + e.Status
}

// TestEventsMissed: a mark of an earlier index begins anew and says so; so does one before Since.
func TestEventsMissed(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "store")
	p := project(t, storetest.Config{Root: root}, "Ann", "Bob")
	q := maildir.EventQuery{What: format.KindInbox, Agent: "Bob", After: maildir.FromNow}
	ask := func(q maildir.EventQuery) *maildir.EventPage {
		t.Helper()
		page, err := p.Events(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	q.After = ask(q).Mark
	send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "one"})
	if page := ask(q); len(page.Events) != 1 || page.Missed {
		t.Errorf("after its mark: %+v", page)
	}
	late := q
	late.Since = time.Now().Add(time.Hour)
	if page := ask(late); len(page.Events) != 0 || !page.Missed {
		t.Errorf("too old: %+v", page)
	}
	early := q
	early.After -= 1_000_000_000 // of an index that was there before
	page := ask(early)
	if len(page.Events) != 0 || !page.Missed {
		t.Errorf("of an earlier index: %+v", page)
	}
	if early.After = page.Mark; ask(early).Missed {
		t.Error("still missed with the fresh mark")
	}
	early.After = page.Mark + 1
	if page := ask(early); !page.Missed {
		t.Errorf("of a later index: %+v", page)
	}
}

// TestWaitEvents: a wait ends with mail that comes, whoever puts it there, and after its time.
func TestWaitEvents(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	q := maildir.EventQuery{What: format.KindInbox, Agent: "Bob", After: maildir.FromNow}
	page, err := p.WaitEvents(t.Context(), q, maildir.Waiting{}, time.Millisecond)
	if err != nil || len(page.Events) > 0 {
		t.Fatalf("nothing came: %+v (%v)", page, err)
	}
	q.After = page.Mark
	waits := make(chan struct{})
	w := maildir.Waiting{Admit: func() error { close(waits); return nil }}
	came := make(chan *maildir.EventPage)
	go func() {
		page, err := p.WaitEvents(t.Context(), q, w, time.Minute)
		if err != nil {
			t.Error(err)
		}
		came <- page
	}()
	<-waits
	send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "one"})
	if page := <-came; page == nil || len(page.Events) != 1 || page.Events[0].Mail.Subject != "one" {
		t.Errorf("came: %+v", page)
	}
}
