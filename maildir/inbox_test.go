package maildir_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// TestPopOnce checks that if 16 consumers read one mailbox while messages arrive, no message is popped twice or lost,
// and the oldest message is popped first (Invariant I4).
func TestPopOnce(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	const total, consumers = 120, 16
	var sent sync.WaitGroup
	for i := range 4 {
		sent.Go(func() {
			for j := range total / 4 {
				send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: fmt.Sprintf("%d-%d", i, j), Body: "b"})
			}
		})
	}
	var popped sync.Map
	var n atomic.Int64
	var all sync.WaitGroup
	for range consumers {
		all.Go(func() {
			last := ""
			for n.Load() < total && t.Context().Err() == nil {
				d, err := p.Box("Bob", format.Origin{}).Pop(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if d == nil {
					continue
				}
				n.Add(1)
				if _, twice := popped.LoadOrStore(d.ID, true); twice {
					t.Errorf("%s popped twice", d.ID)
				}
				if d.ID <= last {
					t.Errorf("%s popped after %s", d.ID, last)
				}
				last = d.ID
			}
		})
	}
	sent.Wait()
	all.Wait()
	if d, err := p.Box("Bob", format.Origin{}).Pop(t.Context()); d != nil || err != nil || n.Load() != total {
		t.Errorf("%d popped of %d, then %v, %v", n.Load(), total, d, err)
	}
}

// TestPopAgainstTouch checks that a pop skips a message if a user has created its mark with `touch x.read` and the
// index does not have the mark yet.
func TestPopAgainstTouch(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "one", Body: "b"})
	two := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "two", Body: "b"})
	first := inbox(t, p, "Bob").Messages[1]
	touch := filepath.Join(p.Dir(), format.ReadMark(first.CopyPath))
	if err := os.WriteFile(touch, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := p.Box("Bob", format.Origin{}).Pop(t.Context())
	if err != nil || d == nil || d.ID != two.ID {
		t.Fatalf("got %v, %v, want the second", d, err)
	}
}

// TestPopCancelled checks that a call that is canceled before it has written the mark pops nothing.
func TestPopCancelled(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "one", Body: "b"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := p.Box("Bob", format.Origin{}).Pop(ctx); !errors.Is(err, context.Canceled) || d != nil {
		t.Fatalf("%v %v", d, err)
	}
	if d, err := p.Box("Bob", format.Origin{}).Pop(t.Context()); err != nil || d == nil {
		t.Fatalf("%v %v", d, err)
	}
}

// TestMarks checks that reading and acknowledging are idempotent and keep the time of the first call. Acknowledging a
// message must also mark it as read, marking it as unread must remove the mark, and the counts must be right.
func TestMarks(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "one", Body: "b"})
	first, err := p.Box("Bob", format.Origin{}).Acknowledge(t.Context(), m.ID)
	if err != nil || !first.Read || !first.Acked || first.AckedAt.IsZero() {
		t.Fatalf("%+v %v", first, err)
	}
	again, err := p.Box("Bob", format.Origin{}).Acknowledge(t.Context(), m.ID)
	if err != nil || !again.AckedAt.Equal(first.AckedAt.Time) || !again.ReadAt.Equal(first.ReadAt.Time) {
		t.Errorf("the first time was not kept: %+v %v", again, err)
	}
	if d, err := p.Box("Bob", format.Origin{}).SetRead(t.Context(), m.ID, false); !errors.Is(err, maildir.ErrConflict) {
		t.Errorf("an acknowledged message was marked unread: %+v %v", d, err)
	}
	m = send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "two", Body: "b"})
	for _, read := range []bool{true, false, true} {
		if d, err := p.Box("Bob", format.Origin{}).SetRead(t.Context(), m.ID, read); err != nil || d.Read != read {
			t.Errorf("%+v %v", d, err)
		}
	}
	if _, err := p.Box("Ann", format.Origin{}).Acknowledge(t.Context(), m.ID); !errors.Is(err, maildir.ErrInvalid) {
		t.Errorf("got %v, want invalid: it is Ann's own", err)
	}
}

// TestAckAlone checks that every method treats a message as read if a user has created an .ack file for it, even
// without a .read file.
func TestAckAlone(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "one", Body: "b"})
	ack := format.AckMark(inbox(t, p, "Bob").Messages[0].CopyPath)
	put(t, p, ack, "2025-10-23T15:22:14Z\n")
	p.Edited([]string{ack}, false)
	until(t, "the mark is in the index", func() bool { return inbox(t, p, "Bob").Messages[0].Acked })
	if page := inbox(t, p, "Bob"); page.Unread != 0 || !page.Messages[0].Read || page.Messages[0].ReadAt != page.Messages[0].AckedAt {
		t.Errorf("%d unread, %+v", page.Unread, page.Messages[0])
	}
	if d, err := p.Box("Bob", format.Origin{}).Pop(t.Context()); d != nil || err != nil {
		t.Errorf("popped %+v, %v", d, err)
	}
	if d, err := p.Box("Bob", format.Origin{}).SetRead(t.Context(), m.ID, true); err != nil || !d.Read {
		t.Errorf("%+v %v", d, err)
	}
	if d, err := p.Box("Bob", format.Origin{}).Acknowledge(t.Context(), m.ID); err != nil || !d.Acked {
		t.Errorf("%+v %v", d, err)
	}
	if d, err := p.Box("Bob", format.Origin{}).SetRead(t.Context(), m.ID, false); !errors.Is(err, maildir.ErrConflict) {
		t.Errorf("an acknowledged message was marked unread: %+v %v", d, err)
	}
}

// TestLongPoll checks that a waiting reader gets a result when a tool sends a message, when a file is written by hand,
// or when the wait times out.
func TestLongPoll(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	wait := func() chan *maildir.InboxPage {
		c := make(chan *maildir.InboxPage, 1)
		go func() {
			page, err := p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{UnreadOnly: true}, true, maildir.Waiting{For: maildir.MaxWait})
			if err != nil {
				t.Error(err)
			}
			c <- page
		}()
		return c
	}
	c := wait()
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "by tool", Body: "b"})
	if page := <-c; page == nil || len(page.Messages) != 1 {
		t.Fatalf("%+v", page)
	}
	c = wait()
	dir := filepath.Join(p.Dir(), "agents/Bob/inbox/by/hand")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := "---json\n{\"id\": \"h1\", \"from\": \"Ann\", \"to\": [\"Bob\"], \"created\": \"2026-01-01T00:00:00Z\"}\n---\nhello\n"
	if err := os.WriteFile(filepath.Join(dir, "h1.md"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	if page := <-c; page == nil || len(page.Messages) != 1 || page.Messages[0].ID != "h1" {
		t.Fatalf("%+v", page)
	}
	page, err := p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{UnreadOnly: true}, false, maildir.Waiting{For: time.Millisecond})
	if err != nil || len(page.Messages) != 0 || page.Total != 2 || page.Unread != 0 {
		t.Errorf("%+v %v", page, err)
	}
}

// TestInboxOfOneMoment checks that the messages and the counts of a page belong to the same state, even while mail is
// arriving and being read.
func TestInboxOfOneMoment(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range 50 {
			_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob"}, Subject: fmt.Sprint(i), Body: "b"})
			if err == nil {
				_, err = p.Box("Bob", format.Origin{}).Pop(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		}
	}()
	for going, looks := true, 0; going || looks < 100; looks++ {
		select {
		case <-ended:
			going = false
		default:
		}
		page, err := p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{UnreadOnly: true}, false, maildir.Waiting{})
		if err != nil || len(page.Messages) != page.Unread {
			t.Errorf("%+v (%v)", page, err)
			break
		}
	}
	<-ended
}

// TestPages checks that pages are complete, do not overlap, and are sorted newest first.
func TestPages(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	for i := range 25 {
		send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: fmt.Sprint(i), Body: "common"})
	}
	var seen []string
	q := index.InboxQuery{Agent: "Bob", Limit: 10}
	for range 4 {
		page, err := p.Box(q.Agent, format.Origin{}).Inbox(t.Context(), q, false, maildir.Waiting{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Messages {
			seen = append(seen, d.Subject)
		}
		if q.Before = page.Next; page.Next == 0 {
			break
		}
	}
	if len(seen) != 25 || seen[0] != "24" || seen[24] != "0" {
		t.Errorf("%v", seen)
	}
	for _, rank := range []bool{false, true} {
		r := maildir.SearchRequest{Text: "common", Limit: 10, Rank: rank}
		found := map[string]bool{}
		for range 4 {
			page, err := p.Search(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range page.Hits {
				found[h.ID] = true
			}
			if r.Cursor = page.Next; page.Next == "" {
				break
			}
		}
		if len(found) != 25 {
			t.Errorf("rank %v: %d found", rank, len(found))
		}
	}
}

// TestBadMarks checks that if a folder exists at the path of one mark, all other marks are still set. The error must
// report the folder.
func TestBadMarks(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	for i := range 3 {
		send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: fmt.Sprint(i), Body: "b"})
	}
	bad := inbox(t, p, "Bob").Messages[1]
	if err := os.Mkdir(filepath.Join(p.Dir(), format.ReadMark(bad.CopyPath)), 0o700); err != nil {
		t.Fatal(err)
	}
	page, err := p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, true, maildir.Waiting{})
	if err != nil || len(page.Messages) != 3 {
		t.Fatalf("%+v %v", page, err)
	}
	if page := inbox(t, p, "Bob"); page.Unread != 1 || page.Messages[1].Read {
		t.Errorf("%+v", page)
	}
	if d, err := p.Box("Bob", format.Origin{}).Pop(t.Context()); d != nil || err != nil {
		t.Errorf("%v %v", d, err)
	}
	if _, err := p.Box("Bob", format.Origin{}).Acknowledge(t.Context(), bad.ID); !errors.Is(err, maildir.ErrConflict) || !strings.Contains(err.Error(), ".read") {
		t.Errorf("%v", err)
	}
}

// TestPopWait checks that each delivery goes to only one of many waiting callers. A caller that gets nothing must
// return when its wait times out, when the server stops, or when its own context ends.
func TestPopWait(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	const n = 8
	got := make(chan string, 2*n)
	wait := func(ctx context.Context, until <-chan struct{}) error {
		d, err := p.Box("Bob", format.Origin{}).PopWait(ctx, maildir.Waiting{For: maildir.MaxWait, Until: until}, nil)
		if d != nil {
			got <- d.ID
		}
		return err
	}
	var waiting sync.WaitGroup
	for range n {
		waiting.Go(func() {
			if err := wait(t.Context(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	sent := map[string]bool{}
	for i := range n {
		sent[send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: fmt.Sprint(i), Body: "b"}).ID] = true
	}
	waiting.Wait()
	for range n {
		id := <-got
		if !sent[id] {
			t.Errorf("%s popped twice or not sent", id)
		}
		delete(sent, id)
	}

	stopping, ctx := make(chan struct{}), t.Context()
	ending, end := context.WithCancel(ctx)
	waiting.Go(func() {
		if err := wait(ctx, stopping); err != nil {
			t.Errorf("after the server stopped: %v", err)
		}
	})
	waiting.Go(func() {
		if err := wait(ending, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("after the caller's context ended: %v", err)
		}
	})
	close(stopping)
	end()
	waiting.Wait()
	if d, err := p.Box("Bob", format.Origin{}).PopWait(ctx, maildir.Waiting{For: time.Millisecond}, nil); d != nil || err != nil {
		t.Errorf("%v %v", d, err)
	}
	if _, err := p.Box("Nobody", format.Origin{}).PopWait(ctx, maildir.Waiting{For: maildir.MaxWait}, nil); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("got %v, want not found", err)
	}
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "late", Body: "b"})
	if d, err := p.Box("Bob", format.Origin{}).Pop(ctx); err != nil || d == nil || d.ID != m.ID {
		t.Errorf("%v %v", d, err)
	}
}

// TestRoomToWait checks that a call asks for permission once if it has to wait, and does not ask if it finds mail. If
// permission is refused, the call must fail.
func TestRoomToWait(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	full := errors.New("full")
	refused := func(wait time.Duration) maildir.Waiting {
		return maildir.Waiting{For: wait, Admit: func() error { return full }}
	}
	bob := p.Box("Bob", format.Origin{})
	if _, err := bob.PopWait(t.Context(), refused(time.Millisecond), nil); !errors.Is(err, full) {
		t.Errorf("a pop that has to wait: %v", err)
	}
	if _, err := bob.Inbox(t.Context(), index.InboxQuery{}, false, refused(time.Millisecond)); !errors.Is(err, full) {
		t.Errorf("a list that has to wait: %v", err)
	}
	if d, err := bob.PopWait(t.Context(), refused(0), nil); d != nil || err != nil {
		t.Errorf("a pop that does not wait: %v, %v", d, err)
	}
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
	if page, err := bob.Inbox(t.Context(), index.InboxQuery{}, false, refused(time.Minute)); err != nil || page.Unread != 1 {
		t.Errorf("a list that finds mail: %v, %v", page, err)
	}
	if d, err := bob.PopWait(t.Context(), refused(time.Minute), nil); err != nil || d == nil {
		t.Errorf("a pop that finds mail: %v, %v", d, err)
	}
	asked := 0
	d, err := bob.PopWait(t.Context(), maildir.Waiting{For: time.Minute, Admit: func() error {
		asked++
		send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
		return nil
	}}, nil)
	if err != nil || d == nil || asked != 1 {
		t.Errorf("a waiting pop: %v, %v, asked for room %d times", d, err, asked)
	}
}

// TestClockSetBack checks that after the clock has jumped forward and back, new mail gets the right date without a
// restart. Pages must list each message once, newest date first, even if the clock jumps back between two pages. Pops
// must return each message once, oldest date first.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64 // in hours
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load()) * time.Hour) }
	p := project(t, storetest.Config{NoWatcher: true, Now: now}, "Ann", "Bob")
	post := func(subject string) {
		t.Helper()
		sent := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: subject, Body: "b"})
		if off := now().Sub(sent.Created); off.Abs() > time.Minute {
			t.Errorf("%s is dated %s, which differs from the clock by %s", subject, sent.Created, off)
		}
	}
	var listed []string
	q := index.InboxQuery{Agent: "Bob", Limit: 1}
	page := func() {
		t.Helper()
		got, err := p.Box(q.Agent, format.Origin{}).Inbox(t.Context(), q, false, maildir.Waiting{})
		if err != nil || len(got.Messages) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		listed, q.Before = append(listed, got.Messages[0].Subject), got.Next
	}
	post("before")
	ahead.Store(240)
	post("jumped")
	post("jumped again")
	page()
	ahead.Store(0)
	post("after")
	post("after again")
	for q.Before != 0 {
		page()
	}
	if diff := cmp.Diff([]string{"jumped again", "jumped", "after again", "after", "before"}, listed); diff != "" {
		t.Error(diff)
	}
	var popped []string
	for d, err := p.Box("Bob", format.Origin{}).Pop(t.Context()); d != nil; d, err = p.Box("Bob", format.Origin{}).Pop(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		popped = append(popped, d.Subject)
	}
	if diff := cmp.Diff([]string{"before", "after", "after again", "jumped", "jumped again"}, popped); diff != "" {
		t.Error(diff)
	}
}

// TestSeenNobody checks that a call for a nonexistent agent leaves no file behind, no matter how the call ends.
func TestSeenNobody(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann")
	ctx := t.Context()
	for verb, call := range map[string]func(name string) error{
		"send": func(n string) error {
			_, err := p.Box(n, format.Origin{}).Send(ctx, maildir.Draft{To: []string{"Ann"}, Body: "b"})
			return err
		},
		"pop":         func(n string) error { _, err := p.Box(n, format.Origin{}).Pop(ctx); return err },
		"read":        func(n string) error { _, err := p.Box(n, format.Origin{}).SetRead(ctx, "m", true); return err },
		"unread":      func(n string) error { _, err := p.Box(n, format.Origin{}).SetRead(ctx, "m", false); return err },
		"acknowledge": func(n string) error { _, err := p.Box(n, format.Origin{}).Acknowledge(ctx, "m"); return err },
		"presence":    func(n string) error { return p.Agents.SetPresence(ctx, n, format.Ready) },
		"claim": func(n string) error {
			_, err := p.Box(n, format.Origin{}).Claim(ctx, claim.Request{Patterns: []string{"a"}})
			return err
		},
		"release": func(n string) error { _, err := p.Box(n, format.Origin{}).Release(ctx, nil); return err },
	} {
		if err := call("Nobody-" + verb); !errors.Is(err, maildir.ErrNotFound) {
			t.Errorf("%s: got %v, want not found", verb, err)
		}
	}
	send(t, p, "Ann", maildir.Draft{To: []string{"Ann"}, Subject: "one", Body: "b"})
	seen := filepath.Join(p.Dir(), format.SeenDir)
	until(t, "the activity is recorded", func() bool { left, _ := os.ReadDir(seen); return len(left) > 0 })
	left, err := os.ReadDir(seen)
	if err != nil || len(left) != 1 || left[0].Name() != "Ann" {
		t.Errorf("%v, %v", left, err)
	}
}
