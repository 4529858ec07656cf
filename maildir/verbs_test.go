package maildir_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
)

func TestMain(m *testing.M) {
	if err := storetest.Isolate(os.Setenv); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

const shop = "/abs/path/shop"

// project opens a store with one project and the given agents.
func project(t testing.TB, cfg storetest.Config, names ...string) *maildir.Project {
	t.Helper()
	s := storetest.Open(t, cfg)
	p, err := s.EnsureProject(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, err := p.Register(t.Context(), maildir.Registration{Program: "x", Model: "y", Task: "z", NameHint: n}); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func send(t testing.TB, p *maildir.Project, d maildir.Draft) *maildir.Sent {
	t.Helper()
	sent, err := p.Send(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func inbox(t testing.TB, p *maildir.Project, agent string) *maildir.InboxPage {
	t.Helper()
	page, err := p.Inbox(t.Context(), maildir.InboxQuery{Agent: agent, Bodies: true, Limit: 200}, false, 0)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// TestSendToAll: to, cc and bcc each get a copy, nobody twice, and what was sent is what is read.
func TestSendToAll(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "Cat", "Dan")
	m := send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob", "Bob"}, CC: []string{"Cat", "Bob"}, BCC: []string{"Dan", "Cat"}, Subject: " Hi ", Body: "text\n\n", ThreadID: "T-1", AckRequired: true})
	for agent, kind := range map[string]string{"Bob": "to", "Cat": "cc", "Dan": "bcc"} {
		page := inbox(t, p, agent)
		if len(page.Messages) != 1 || page.Total != 1 || page.Unread != 1 {
			t.Fatalf("%s: %+v", agent, page)
		}
		d := page.Messages[0]
		if d.Kind != kind || d.Body != "text\n\n" || d.Subject != "Hi" || d.ID != m.ID || d.Read || d.Acked || !d.AckRequired {
			t.Errorf("%s: %+v", agent, d)
		}
		wantBCC := []string(nil)
		if agent == "Dan" {
			wantBCC = []string{"Dan"}
		}
		if diff := cmp.Diff(wantBCC, d.BCC); diff != "" {
			t.Errorf("bcc that %s sees: %s", agent, diff)
		}
	}
}

// TestBCCIsPrivate: a bcc recipient is named in its own copy and the sender's, in no other file, commit or row. I7.
func TestBCCIsPrivate(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "Hidden")
	if err := p.Flush(t.Context()); err != nil { // the registrations name it, and may
		t.Fatal(err)
	}
	m := send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, BCC: []string{"Hidden"}, Subject: "s", Body: "b"})
	if _, err := p.Reply(t.Context(), maildir.ReplyDraft{From: "Bob", ReplyTo: m.ID, Body: "r"}); err != nil {
		t.Fatal(err)
	}
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var named []string
	err := p.Tree().Walk(t.Context(), "", func(path string, _ fs.DirEntry) error {
		data, err := os.ReadFile(filepath.Join(p.Tree().Dir(), path))
		if strings.Contains(string(data), "Hidden") && !strings.HasPrefix(path, "agents/Hidden/") {
			named = append(named, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(named) != 1 || !strings.HasPrefix(named[0], "agents/Ann/outbox/") {
		t.Errorf("Hidden is named in %v", named)
	}
	log, err := exec.Command("git", "-C", p.Tree().Dir(), "log", "--format=%an %ae %s %b", "--grep", m.ID).Output()
	if err != nil || len(log) == 0 || strings.Contains(string(log), "Hidden") {
		t.Errorf("git log: %v %s", err, log)
	}
	for _, q := range []string{"to:Hidden", "Hidden"} {
		page, err := p.Search(t.Context(), maildir.SearchRequest{Text: q})
		if err != nil || len(page.Hits) > 0 {
			t.Errorf("search %s: %v %v", q, page, err)
		}
	}
	row, err := p.Message(t.Context(), m.ID)
	if err != nil || len(row.BCC) > 0 {
		t.Errorf("%v %v", row, err)
	}
	thread, err := p.Thread(t.Context(), m.ID, true)
	if err != nil || len(thread) != 2 || len(thread[0].BCC)+len(thread[1].BCC) > 0 {
		t.Errorf("%v %v", thread, err)
	}
}

// TestConcurrentSends: many senders share groups; every reply received is in the inbox, in the order of creation.
func TestConcurrentSends(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	const clients, each = 16, 12
	var all sync.WaitGroup
	ids := make([][]string, clients)
	for c := range clients {
		all.Go(func() {
			for i := range each {
				m, err := p.Send(t.Context(), maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: fmt.Sprint(c, i), Body: "b"})
				if err != nil {
					t.Error(err)
					return
				}
				ids[c] = append(ids[c], m.ID)
			}
		})
	}
	all.Wait()
	page := inbox(t, p, "Bob")
	var got []string
	for _, d := range page.Messages {
		got = append(got, d.ID)
	}
	if !slices.IsSortedFunc(got, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Error("not newest first")
	}
	want := slices.Concat(ids...)
	slices.Sort(want)
	slices.Sort(got)
	if d := cmp.Diff(want, got); d != "" || len(want) != clients*each {
		t.Error(d)
	}
}

// TestPopOnce: 16 consumers on one mailbox while messages arrive: nothing twice, nothing lost, oldest first. I4.
func TestPopOnce(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	const total, consumers = 120, 16
	var sent sync.WaitGroup
	for i := range 4 {
		sent.Go(func() {
			for j := range total / 4 {
				send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: fmt.Sprintf("%d-%d", i, j), Body: "b"})
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
				d, err := p.Pop(t.Context(), "Bob")
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
	if d, err := p.Pop(t.Context(), "Bob"); d != nil || err != nil || n.Load() != total {
		t.Errorf("%d popped of %d, then %v, %v", n.Load(), total, d, err)
	}
}

// TestPopAgainstTouch: a person's `touch x.read` between listing and popping decides for the person.
func TestPopAgainstTouch(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "one", Body: "b"})
	two := send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "two", Body: "b"})
	first := inbox(t, p, "Bob").Messages[1]
	touch := filepath.Join(p.Tree().Dir(), maildir.ReadMark(first.CopyPath))
	if err := os.WriteFile(touch, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := p.Pop(t.Context(), "Bob")
	if err != nil || d == nil || d.ID != two.ID {
		t.Fatalf("got %v, %v, want the second", d, err)
	}
}

// TestPopCancelled: a call cancelled before the mark pops nothing.
func TestPopCancelled(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "one", Body: "b"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := p.Pop(ctx, "Bob"); !errors.Is(err, context.Canceled) || d != nil {
		t.Fatalf("%v %v", d, err)
	}
	if d, err := p.Pop(t.Context(), "Bob"); err != nil || d == nil {
		t.Fatalf("%v %v", d, err)
	}
}

// TestMarks: reading and acknowledging are idempotent, the first time stays; acknowledging reads; unreading takes
// the mark away, counts agree.
func TestMarks(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	m := send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "one", Body: "b"})
	first, err := p.Acknowledge(t.Context(), "Bob", m.ID)
	if err != nil || !first.Read || !first.Acked || first.AckedAt.IsZero() {
		t.Fatalf("%+v %v", first, err)
	}
	again, err := p.Acknowledge(t.Context(), "Bob", m.ID)
	if err != nil || !again.AckedAt.Equal(first.AckedAt) || !again.ReadAt.Equal(first.ReadAt) {
		t.Errorf("the first time did not stay: %+v %v", again, err)
	}
	if d, err := p.SetRead(t.Context(), "Bob", m.ID, false); err != nil || d.Read || !d.Acked {
		t.Errorf("%+v %v", d, err)
	}
	if page := inbox(t, p, "Bob"); page.Unread != 1 {
		t.Errorf("unread %d", page.Unread)
	}
	if d, err := p.SetRead(t.Context(), "Bob", m.ID, true); err != nil || !d.Read {
		t.Errorf("%+v %v", d, err)
	}
	if _, err := p.Acknowledge(t.Context(), "Ann", m.ID); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("got %v, want not found", err)
	}
}

// TestReply: recipients, subject and thread as SPEC 3 says.
func TestReply(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "Cat")
	m := send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, CC: []string{"Cat"}, Subject: "Plan", Body: "b", Importance: "high"})
	r, err := p.Reply(t.Context(), maildir.ReplyDraft{From: "Bob", ReplyTo: m.ID, Body: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"Ann"}, r.To); d != "" || r.Subject != "Re: Plan" || r.ThreadID != m.ID || r.InReplyTo != m.ID || r.Importance != "high" {
		t.Errorf("%+v", r.Message)
	}
	own, err := p.Reply(t.Context(), maildir.ReplyDraft{From: "Ann", ReplyTo: m.ID, Body: "more"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([][]string{{"Bob"}, {"Cat"}}, [][]string{own.To, own.CC}); d != "" {
		t.Error(d)
	}
	rr, err := p.Reply(t.Context(), maildir.ReplyDraft{From: "Ann", ReplyTo: r.ID, Body: "rr"})
	if err != nil || rr.Subject != "Re: Plan" || rr.ThreadID != m.ID {
		t.Errorf("%+v %v", rr, err)
	}
	thread, err := p.Thread(t.Context(), m.ID, false)
	if err != nil || len(thread) != 4 {
		t.Errorf("%d in the thread, %v", len(thread), err)
	}
}

// TestKeyConcurrently: the same key from many goroutines delivers once.
func TestKeyConcurrently(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "Cat")
	var all sync.WaitGroup
	var ids sync.Map
	for range 12 {
		all.Go(func() {
			m, err := p.Send(t.Context(), maildir.Draft{From: "Ann", To: []string{"Bob"}, BCC: []string{"Cat"}, Subject: "s", Body: "b", Key: "k"})
			if err != nil {
				t.Error(err)
				return
			}
			ids.Store(m.ID, true)
		})
	}
	all.Wait()
	n := 0
	ids.Range(func(_, _ any) bool { n++; return true })
	if page := inbox(t, p, "Bob"); n != 1 || page.Total != 1 {
		t.Errorf("%d ids, %d deliveries", n, page.Total)
	}
	if m, err := p.Send(t.Context(), maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "b", Key: "k"}); err != nil || m.Again {
		t.Errorf("other recipients are another message: %+v %v", m, err)
	}
	if _, err := p.Send(t.Context(), maildir.Draft{From: "Ann", To: []string{"Cat", "Bob"}, Subject: "other", Body: "b", Key: "k"}); !errors.Is(err, maildir.ErrConflict) {
		t.Errorf("got %v, want conflict", err)
	}
}

// TestRegisterConcurrently: no two agents get one name, whatever the case.
func TestRegisterConcurrently(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{})
	var all sync.WaitGroup
	var mu sync.Mutex
	names := map[string]bool{}
	for i := range 16 {
		all.Go(func() {
			hint := []string{"BlueLake", "bluelake", "BLUELAKE", ""}[i%4]
			r, err := p.Register(t.Context(), maildir.Registration{Program: "x", NameHint: hint})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if low := strings.ToLower(r.Name); names[low] {
				t.Errorf("%s twice", r.Name)
			} else {
				names[low] = true
			}
			if hint != "" && !strings.EqualFold(r.Name, hint) && r.Note == "" {
				t.Error("a hint was not used and nothing says so")
			}
		})
	}
	all.Wait()
	if len(names) != 16 || !names["bluelake"] {
		t.Errorf("%v", names)
	}
}

// TestClaimsNeverBothWin: overlapping exclusive claims of 16 goroutines: one holds.
func TestClaimsNeverBothWin(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 16 {
		names = append(names, fmt.Sprintf("Agent%02d", i))
	}
	p := project(t, storetest.Config{}, names...)
	patterns := []string{"src/**", "src/a.go", "src/*.go", "s*/a.go"}
	var all sync.WaitGroup
	var won atomic.Int64
	for i, n := range names {
		all.Go(func() {
			r, err := p.Claim(t.Context(), maildir.ClaimRequest{Agent: n, Patterns: []string{patterns[i%4], "own/" + n}})
			if err != nil {
				t.Error(err)
				return
			}
			if len(r.Granted) > 0 {
				won.Add(1)
			}
		})
	}
	all.Wait()
	live, err := p.Claims(t.Context(), false)
	if err != nil || won.Load() != 1 || len(live) != 2 {
		t.Errorf("%d won, %d live claims, %v", won.Load(), len(live), err)
	}
}

// TestClaimLife: shared claims coexist, renewal keeps what a person wrote into the file, dry runs take nothing,
// release and expiry free.
func TestClaimLife(t *testing.T) {
	t.Parallel()
	var jump atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }
	p := project(t, storetest.Config{Now: now}, "Ann", "Bob")
	claim := func(agent string, r maildir.ClaimRequest) *maildir.ClaimResult {
		t.Helper()
		r.Agent = agent
		res, err := p.Claim(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	doc := []string{"doc"}
	if r := claim("Ann", maildir.ClaimRequest{Patterns: doc, DryRun: true}); len(r.Granted) != 1 {
		t.Errorf("%+v", r)
	}
	if live, _ := p.Claims(t.Context(), false); len(live) != 0 {
		t.Errorf("a dry run took %v", live)
	}
	a := claim("Ann", maildir.ClaimRequest{Patterns: doc, Shared: true, Reason: "why"})
	claim("Bob", maildir.ClaimRequest{Patterns: doc, Shared: true})
	if r := claim("Bob", maildir.ClaimRequest{Patterns: []string{"free", "doc/x"}}); len(r.Conflicts) != 1 || len(r.Granted) != 0 || r.Conflicts[0].Held.Reason != "why" {
		t.Errorf("%+v", r)
	}
	file := filepath.Join(p.Tree().Dir(), a.Granted[0].Path)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.Replace(string(data), "{", "{\n  \"note\": {\"by\":  \"hand\"},", 1)
	if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := claim("Ann", maildir.ClaimRequest{Patterns: doc, Shared: true, TTL: 2 * time.Hour})
	data, _ = os.ReadFile(file)
	if !strings.Contains(string(data), `"note": {"by":  "hand"}`) || r.Granted[0].Reason != "why" || !r.Granted[0].Created.Equal(a.Granted[0].Created) {
		t.Errorf("renewed: %+v\n%s", r.Granted[0], data)
	}
	out, err := exec.Command("git", "-C", p.Tree().Dir(), "log", "-p", "--", a.Granted[0].Path).Output()
	if err != nil || !strings.Contains(string(out), `+  "note": {"by":  "hand"}`) {
		t.Errorf("the edit is not in the history before the renewal: %v\n%s", err, out)
	}
	released, err := p.Release(t.Context(), "Bob", nil)
	if err != nil || len(released) != 1 {
		t.Errorf("%v %v", released, err)
	}
	jump.Store(int64(3 * time.Hour))
	if r := claim("Bob", maildir.ClaimRequest{Patterns: doc}); len(r.Granted) != 1 {
		t.Errorf("an expired claim still holds: %+v", r)
	}
	if r := claim("Bob", maildir.ClaimRequest{Patterns: doc}); len(r.Granted) != 1 {
		t.Errorf("again: %+v", r)
	}
}

// TestLongPoll: a waiting reader is answered by a tool's message, by a file made by hand, and by the end of its time.
func TestLongPoll(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	wait := func() chan *maildir.InboxPage {
		c := make(chan *maildir.InboxPage, 1)
		go func() {
			page, err := p.Inbox(t.Context(), maildir.InboxQuery{Agent: "Bob", UnreadOnly: true}, true, maildir.MaxWait)
			if err != nil {
				t.Error(err)
			}
			c <- page
		}()
		return c
	}
	c := wait()
	send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "by tool", Body: "b"})
	if page := <-c; page == nil || len(page.Messages) != 1 {
		t.Fatalf("%+v", page)
	}
	c = wait()
	dir := filepath.Join(p.Tree().Dir(), "agents/Bob/inbox/by/hand")
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
	page, err := p.Inbox(t.Context(), maildir.InboxQuery{Agent: "Bob", UnreadOnly: true}, false, time.Millisecond)
	if err != nil || len(page.Messages) != 0 || page.Total != 2 || page.Unread != 0 {
		t.Errorf("%+v %v", page, err)
	}
}

// TestPages: pages are complete, without overlap, newest first.
func TestPages(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	for i := range 25 {
		send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: fmt.Sprint(i), Body: "common"})
	}
	var seen []string
	q := maildir.InboxQuery{Agent: "Bob", Limit: 10}
	for range 4 {
		page, err := p.Inbox(t.Context(), q, false, 0)
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

// TestVerified: what the server wrote is verified; a message edited or made by hand is not.
func TestVerified(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	p, err := s.EnsureProject(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"Ann", "Bob"} {
		if _, err := p.Register(t.Context(), maildir.Registration{NameHint: n}); err != nil {
			t.Fatal(err)
		}
	}
	m := send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: "s", Body: "text", Auth: "token"})
	row, err := p.Message(t.Context(), m.ID)
	if err != nil {
		t.Fatal(err)
	}
	if auth, ok := s.Verified(&row.Message); !ok || auth != "token" {
		t.Errorf("auth %q, verified %v", auth, ok)
	}
	file := filepath.Join(p.Tree().Dir(), row.Path)
	data, _ := os.ReadFile(file)
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), "text", "test", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	row, err = p.Message(t.Context(), m.ID)
	if err != nil || row.Body != "test" {
		t.Fatalf("%+v %v", row, err)
	}
	if _, ok := s.Verified(&row.Message); ok {
		t.Error("an edited message is verified")
	}
}

// TestAttachments: a file of the code base goes along, named by content; nothing outside may be read.
func TestAttachments(t *testing.T) {
	t.Parallel()
	code := t.TempDir()
	for name, text := range map[string]string{"docs/flow.txt": "flow", ".env": "SECRET=1", "sub/.hidden/x": "x"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(code, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(code, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(code, "link")); err != nil {
		t.Fatal(err)
	}
	s := storetest.Open(t, storetest.Config{})
	p, err := s.EnsureProject(t.Context(), code)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Register(t.Context(), maildir.Registration{NameHint: "Ann"}); err != nil {
		t.Fatal(err)
	}
	d := maildir.Draft{From: "Ann", To: []string{"Ann"}, Subject: "s", Body: "b", Attachments: []string{"docs/flow.txt"}}
	if _, err := p.Send(t.Context(), d); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("a folder that is no Git work tree was read: %v", err)
	}
	if err := os.Mkdir(filepath.Join(code, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m := send(t, p, d)
		data, err := os.ReadFile(filepath.Join(p.Tree().Dir(), m.Attachments[0].Path))
		if err != nil || string(data) != "flow" || m.Attachments[0].Bytes != 4 || m.Attachments[0].Name != "flow.txt" {
			t.Errorf("%q %v %+v", data, err, m.Attachments)
		}
	}
	for _, bad := range []string{".env", "sub/.hidden/x", "link", "/etc/passwd", "../x", ".git/config", "docs", "", filepath.Join(code, ".env")} {
		d.Attachments = []string{bad}
		if _, err := p.Send(t.Context(), d); err == nil || maildir.Code(err) == "internal" {
			t.Errorf("attachment %q: %v", bad, err)
		}
	}
}

// TestWorktreesShare: a path inside a linked Git work tree means the same path in the main one.
func TestWorktreesShare(t *testing.T) {
	t.Parallel()
	main := filepath.Join(t.TempDir(), "main")
	linked := filepath.Join(t.TempDir(), "linked")
	for _, args := range [][]string{{"init", "-q", main}, {"-C", main, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x"}, {"-C", main, "worktree", "add", "-q", linked}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	s := storetest.Open(t, storetest.Config{NoWatcher: true})
	a, err := s.EnsureProject(t.Context(), main)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := s.EnsureProject(t.Context(), linked); err != nil || b != a {
		t.Errorf("%v %v", b, err)
	}
	if c, err := s.EnsureProject(t.Context(), filepath.Join(linked, "sub")); err != nil || c.HumanKey() != filepath.Join(main, "sub") {
		t.Errorf("%v %v", c.HumanKey(), err)
	}
}

// TestMailboxes: one's own can be made again, listed and deleted; another's cannot; root can all.
func TestMailboxes(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann")
	me, other, root := maildir.Caller{UID: 1000}, maildir.Caller{UID: 1001}, maildir.Caller{Root: true}
	for range 2 {
		m, err := p.CreateMailbox(t.Context(), "task-42", me)
		if err != nil || m.Owner != 1000 || !m.Registered {
			t.Fatalf("%+v %v", m, err)
		}
	}
	for name, by := range map[string]maildir.Caller{"task-42": other, "TASK-42": other, "Ann": me} {
		if _, err := p.CreateMailbox(t.Context(), name, by); !errors.Is(err, maildir.ErrDenied) {
			t.Errorf("%s by %d: %v", name, by.UID, err)
		}
	}
	if _, err := p.CreateMailbox(t.Context(), "../x", me); !errors.Is(err, maildir.ErrInvalid) {
		t.Errorf("%v", err)
	}
	for by, want := range map[maildir.Caller]int{me: 1, other: 0, root: 2} {
		if l, err := p.Mailboxes(t.Context(), by); err != nil || len(l) != want {
			t.Errorf("%+v sees %v, %v", by, l, err)
		}
	}
	m := send(t, p, maildir.Draft{From: "Ann", To: []string{"task-42"}, Subject: "s", Body: "b"})
	if _, err := p.DeleteMailbox(t.Context(), "task-42", true, other); !errors.Is(err, maildir.ErrDenied) {
		t.Errorf("%v", err)
	}
	if _, err := p.DeleteMailbox(t.Context(), "task-42", false, me); !errors.Is(err, maildir.ErrConflict) {
		t.Errorf("%v", err)
	}
	if _, err := p.DeleteMailbox(t.Context(), "task-42", true, me); err != nil {
		t.Fatal(err)
	}
	if l, err := p.Mailboxes(t.Context(), root); err != nil || len(l) != 1 {
		t.Errorf("%v %v", l, err)
	}
	if _, err := p.Message(t.Context(), m.ID); err != nil {
		t.Errorf("the sender's message went with the mailbox: %v", err)
	}
}

// TestBadMarks: a folder or link where a mark belongs stops no other mark, and the answer names it.
func TestBadMarks(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	for i := range 3 {
		send(t, p, maildir.Draft{From: "Ann", To: []string{"Bob"}, Subject: fmt.Sprint(i), Body: "b"})
	}
	bad := inbox(t, p, "Bob").Messages[1]
	if err := os.Mkdir(filepath.Join(p.Tree().Dir(), maildir.ReadMark(bad.CopyPath)), 0o700); err != nil {
		t.Fatal(err)
	}
	page, err := p.Inbox(t.Context(), maildir.InboxQuery{Agent: "Bob"}, true, 0)
	if err != nil || len(page.Messages) != 3 {
		t.Fatalf("%+v %v", page, err)
	}
	if page := inbox(t, p, "Bob"); page.Unread != 1 || page.Messages[1].Read {
		t.Errorf("%+v", page)
	}
	if d, err := p.Pop(t.Context(), "Bob"); d != nil || err != nil {
		t.Errorf("%v %v", d, err)
	}
	if _, err := p.Acknowledge(t.Context(), "Bob", bad.ID); !errors.Is(err, maildir.ErrConflict) || !strings.Contains(err.Error(), ".read") {
		t.Errorf("%v", err)
	}
}

// TestRenewOnOtherBranch: where nothing can be committed, an agent can still renew, release and take its claims again.
func TestRenewOnOtherBranch(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann")
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		await(t, func() bool {
			return exec.Command("git", append([]string{"-C", p.Tree().Dir()}, args...)...).Run() == nil
		})
	}
	git("checkout", "-q", "-b", "side")
	for range 3 {
		if _, err := p.Claim(t.Context(), maildir.ClaimRequest{Agent: "Ann", Patterns: []string{"x"}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Release(t.Context(), "Ann", nil); err != nil {
		t.Fatal(err)
	}
	if r, err := p.Claim(t.Context(), maildir.ClaimRequest{Agent: "Ann", Patterns: []string{"x"}}); err != nil || len(r.Granted) != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	git("checkout", "-q", "main")
}

// await waits for a condition.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatal("it did not come to pass")
		}
	}
}
