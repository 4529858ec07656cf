package maildir_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/bulk"
	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// waitsOf returns what is waiting for an agent.
func waitsOf(t testing.TB, p *maildir.Project, agent string) *maildir.Waits {
	t.Helper()
	w, err := p.Box(agent, format.Origin{}).Waits(t.Context(), maildir.WaitsQuery{})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// rowsOf returns one line for each thread in the groups of w.
func rowsOf(w *maildir.Waits) (lines []string) {
	for i, group := range [][]maildir.WaitingThread{w.Blocked, w.Questions, w.New, w.Owed} {
		for _, r := range group {
			lines = append(lines, fmt.Sprintf("%s %s %s|%s|%s|%s|%d of %d", []string{"blocked", "question", "new", "owed"}[i], r.Importance,
				strings.Join(r.People, ","), r.Subject, r.Why, r.Line, r.Waiting, r.Messages))
		}
	}
	return lines
}

func wantRows(t *testing.T, w *maildir.Waits, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, rowsOf(w)); diff != "" {
		t.Errorf("waiting for %s (-want +got):\n%s", w.Agent, diff)
	}
}

// TestWaits checks the groups, the order of the groups and threads, and that each thread is in only one group.
func TestWaits(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "Cy", "Di")
	to := func(names ...string) maildir.Draft { return maildir.Draft{To: names} }
	put := func(from string, d maildir.Draft, subject, body string) *maildir.Sent {
		d.Subject, d.Body = subject, body
		return send(t, p, from, d)
	}
	put("Bob", to("Ann"), "FYI 1", "# A *plan*\n\nof `two` lines")
	ack := to("Ann", "Cy")
	ack.AckRequired, ack.Importance = true, format.High
	plan := put("Bob", ack, "Plan", "Read it.")
	put("Cy", maildir.Draft{To: []string{"Ann"}, ThreadID: plan.ID, Importance: format.Urgent}, "Re: Plan", "I did.")
	put("Bob", to("Ann"), "May I?", "Or not?")
	put("Di", maildir.Draft{To: []string{"Bob"}, CC: []string{"Ann"}}, "May Bob?", "A copy is no question to Ann.")
	put("Di", to("Ann"), "FYI 2", "Later.")
	put("Di", maildir.Draft{To: []string{"Ann"}, Importance: format.Urgent}, "Fire", "It burns.")
	mine := to("Bob", "Cy", "Di")
	mine.AckRequired = true
	release := put("Ann", mine, "Release", "On Friday.")
	if _, err := p.Box("Cy", format.Origin{}).Acknowledge(t.Context(), release.ID); err != nil {
		t.Fatal(err)
	}
	asked := put("Ann", to("Cy"), "Ready?", "Are you?")
	put("Di", maildir.Draft{To: []string{"Bob"}, ThreadID: asked.ID}, "By the way", "Di was not asked.")
	put("Ann", to("Ann"), "Note to self?", "Is none that waits for others.")

	w := waitsOf(t, p, "Ann")
	wantRows(t, w,
		"blocked urgent Cy,Bob|Plan|needs acknowledgement|Read it.|2 of 2",
		"question normal Bob|May I?|needs an answer|Or not?|1 of 1",
		"new urgent Di|Fire||It burns.|1 of 1",
		"new normal Ann|Note to self?||Is none that waits for others.|1 of 1",
		"new normal Di|FYI 2||Later.|1 of 1",
		"new normal Di|May Bob?||A copy is no question to Ann.|1 of 1",
		"new normal Bob|FYI 1||A plan of two lines|1 of 1",
		"owed normal Cy|Ready?|has not answered|Are you?|1 of 2",
		"owed normal Bob,Di|Release|have not acknowledged|On Friday.|1 of 1",
	)
	if w.Unread != 8 || w.More() != 0 || w.Blocked[0].Message != plan.ID || w.Blocked[0].Thread != plan.ID {
		t.Errorf("unread %d, more %d, %s in thread %s is waiting", w.Unread, w.More(), w.Blocked[0].Message, w.Blocked[0].Thread)
	}

	if _, err := p.Box("Cy", format.Origin{}).Reply(t.Context(), asked.ID, maildir.Draft{Body: "Yes."}); err != nil {
		t.Fatal(err)
	}
	w = waitsOf(t, p, "Ann")
	if got := rowsOf(w)[2]; got != "new urgent Di|Fire||It burns.|1 of 1" || len(w.Owed) != 1 || rowsOf(w)[3] != "new normal Cy|Ready?||Yes.|1 of 3" {
		t.Errorf("after the answer: %s", strings.Join(rowsOf(w), "\n"))
	}
}

// TestWaitsSettled checks that a message that is waiting for an answer stays listed after it was read. Sending a
// message in its thread, acknowledging it or archiving it must remove it from the list.
func TestWaitsSettled(t *testing.T) {
	t.Parallel()
	var jump atomic.Int64
	p := project(t, storetest.Config{Now: func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }}, "Ann", "Bob")
	ann := p.Box("Ann", format.Origin{})
	var ids []string
	for _, subject := range []string{"One?", "Two?", "Three?", "Four?", "Five?", "Told"} {
		ids = append(ids, send(t, p, "Bob", maildir.Draft{To: []string{"Ann"}, Subject: subject, Body: "b", AckRequired: subject == "Five?"}).ID)
	}
	for _, id := range ids {
		if _, err := ann.SetRead(t.Context(), id, true); err != nil {
			t.Fatal(err)
		}
	}
	named := func(group []maildir.WaitingThread) (subjects string) {
		for _, r := range group {
			subjects += r.Subject
		}
		return subjects
	}
	if w := waitsOf(t, p, "Ann"); named(w.Questions) != "Five?Four?Three?Two?One?" || len(w.New)+w.Unread > 0 {
		t.Errorf("read: %q, %d new", named(w.Questions), len(w.New))
	}
	if w := waitsOf(t, p, "Bob"); named(w.Owed) != "Five?Four?Three?Two?One?" {
		t.Errorf("Bob is waiting for %q", named(w.Owed))
	}
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "Re: One?", Body: "yes", ThreadID: ids[0]})
	if _, err := ann.Acknowledge(t.Context(), ids[1]); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{ids[2], ids[4]} {
		if _, err := ann.Archive(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if w := waitsOf(t, p, "Ann"); named(w.Questions) != "Four?" {
		t.Errorf("settled: %q", named(w.Questions))
	}
	if w := waitsOf(t, p, "Bob"); named(w.Owed) != "Five?Four?Three?" {
		t.Errorf("Bob is waiting for %q", named(w.Owed))
	}
	jump.Store(int64(15 * 24 * time.Hour))
	if w := waitsOf(t, p, "Ann"); len(w.Questions) > 0 {
		t.Errorf("after two weeks: %q", named(w.Questions))
	}
	if w := waitsOf(t, p, "Bob"); named(w.Owed) != "Five?" {
		t.Errorf("after two weeks, Bob is waiting for %q", named(w.Owed))
	}
}

// TestWaitsBesides checks that stopped agents, agents that cannot be woken, and invalid files are listed for every
// caller, even if the caller's name does not belong to an agent. The lists must never be null.
func TestWaitsBesides(t *testing.T) {
	t.Parallel()
	var jump atomic.Int64
	p := project(t, storetest.Config{Now: func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }}, "Ann", "Bob")
	data, err := json.Marshal(waitsOf(t, p, "nobody"))
	if err != nil || strings.Contains(string(data), "null") {
		t.Errorf("%s, %v", data, err)
	}
	if err := os.WriteFile(filepath.Join(p.Dir(), "a.txt"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b", Attachments: []string{"a.txt"}})
	if w := waitsOf(t, p, "Bob"); len(w.New) != 1 || w.New[0].Files != 1 {
		t.Errorf("new: %+v", w.New)
	}
	for _, agent := range []string{"Ann", "Bob"} {
		if _, err := p.Box(agent, format.Origin{}).Claim(t.Context(), claim.Request{Agent: agent, Patterns: []string{"a/*"}, TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
	}
	bad := filepath.Join(p.Dir(), "messages", "bad.md")
	if err := os.WriteFile(bad, []byte("no header"), 0o600); err != nil {
		t.Fatal(err)
	}
	jump.Store(int64(16 * time.Minute))
	until(t, "the file is known", func() bool { return len(waitsOf(t, p, "nobody").Broken) == 1 })
	w := waitsOf(t, p, "nobody")
	if len(w.Stopped) != 1 || w.Stopped[0].Agent != "Bob" || len(w.Asleep) != 1 || w.Asleep[0].Agent != "Bob" || w.MoreBroken != 0 {
		t.Errorf("stopped %+v, asleep %+v, %d more broken", w.Stopped, w.Asleep, w.MoreBroken)
	}
	var again maildir.Waits
	data, err = json.Marshal(w)
	if err == nil {
		err = json.Unmarshal(data, &again)
	}
	if diff := cmp.Diff(w, &again, cmp.Comparer(time.Time.Equal)); err != nil || diff != "" {
		t.Errorf("%v, as JSON and back:\n%s", err, diff)
	}
}

// TestWaitsMost checks that a group lists up to 50 threads, and that further threads are only counted.
func TestWaitsMost(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	const n = 53
	for i := range n {
		send(t, p, "Bob", maildir.Draft{To: []string{"Ann"}, Subject: fmt.Sprint(i), Body: "b"})
	}
	if w := waitsOf(t, p, "Ann"); len(w.New) != 50 || w.More() != n-50 || w.Unread != n || w.New[0].Subject != fmt.Sprint(n-1) {
		t.Errorf("%d of %d listed, %d more", len(w.New), w.Unread, w.More())
	}
}

// BenchmarkWaits measures Waits for an agent with 2,500 unread messages in 625 threads. For comparison, it measures
// an inbox page of 20 messages in the same run.
func BenchmarkWaits(b *testing.B) {
	mail := bulk.Mail{Messages: 5_000, Agents: 2, Linked: true}
	root := mail.Store(b)
	storetest.Rebuild(b, root)
	s := storetest.Open(b, storetest.Config{Root: root, NoWatcher: true, NoCheck: true})
	p, err := s.Project(b.Context(), bulk.Slug())
	if err != nil {
		b.Fatal(err)
	}
	box := p.Box("Agent01", format.Origin{})
	b.Run("waits", func(b *testing.B) {
		for b.Loop() {
			if w := waitsOf(b, p, "Agent01"); len(w.New) != 50 || w.More() != 200 {
				b.Fatal(len(w.New), w.More())
			}
		}
	})
	b.Run("ceiling", func(b *testing.B) {
		for b.Loop() {
			if _, err := box.Inbox(b.Context(), index.InboxQuery{UnreadOnly: true}, false, maildir.Waiting{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestWaitChangesEnds checks that WaitChanges returns context.Cause(ctx) if ctx ends, even while the index is being
// read.
func TestWaitChangesEnds(t *testing.T) {
	t.Parallel()
	store := storetest.Open(t, storetest.Config{})
	why := errors.New("a turn has ended")
	ctx, end := context.WithCancelCause(t.Context())
	end(why)
	if changes, err := store.WaitChanges(ctx, 0, 1); !errors.Is(err, why) {
		t.Errorf("%d changes, error %v, want %v", len(changes), err, why)
	}
}

// TestLater checks that Later hides a thread until the given time is over or a new message arrives in the thread.
func TestLater(t *testing.T) {
	t.Parallel()
	var jump atomic.Int64
	p := project(t, storetest.Config{Now: func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }}, "Ann", "Bob")
	ann := p.Box("Ann", format.Origin{})
	one := send(t, p, "Bob", maildir.Draft{To: []string{"Ann"}, Subject: "One?", Body: "b"})
	send(t, p, "Bob", maildir.Draft{To: []string{"Ann"}, Subject: "Re: One?", Body: "b", ThreadID: one.ID})
	send(t, p, "Bob", maildir.Draft{To: []string{"Ann"}, Subject: "Two", Body: "b"})
	const oneRow, twoRow = "question normal Bob|One?|needs an answer|b|2 of 2", "new normal Bob|Two||b|1 of 1"
	wantRows(t, waitsOf(t, p, "Ann"), oneRow, twoRow)
	later, err := ann.Later(t.Context(), one.ID, time.Hour)
	if err != nil || later.Thread != one.ID || later.Subject != "One?" {
		t.Fatalf("%+v, %v", later, err)
	}
	w := waitsOf(t, p, "Ann")
	wantRows(t, w, twoRow)
	if w.Later != 1 || !w.LaterUntil.Equal(later.Until.Time) || w.Unread != 3 {
		t.Errorf("%d threads later, until %v and not %v, %d unread", w.Later, w.LaterUntil, later.Until, w.Unread)
	}
	jump.Store(int64(time.Hour + time.Minute))
	if w := waitsOf(t, p, "Ann"); w.Later != 0 {
		t.Errorf("%d threads later", w.Later)
	}
	wantRows(t, waitsOf(t, p, "Ann"), oneRow, twoRow)
	if _, err := ann.Later(t.Context(), one.ID, time.Hour); err != nil {
		t.Fatal(err)
	}
	send(t, p, "Bob", maildir.Draft{To: []string{"Ann"}, Subject: "Re: One?", Body: "c", ThreadID: one.ID})
	wantRows(t, waitsOf(t, p, "Ann"), "question normal Bob|One?|needs an answer|b|3 of 3", twoRow)
	for _, long := range []time.Duration{0, -time.Hour, maildir.MaxLater + 1} {
		if _, err := ann.Later(t.Context(), one.ID, long); !errors.Is(err, maildir.ErrInvalid) {
			t.Errorf("for %v: %v", long, err)
		}
	}
	if _, err := p.Box("Bob", format.Origin{}).Later(t.Context(), one.ID, time.Hour); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("the thread is not in Bob's inbox: %v", err)
	}
}
