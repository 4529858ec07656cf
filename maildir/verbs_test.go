package maildir_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

func TestMain(m *testing.M) {
	if err := storetest.Isolate(os.Setenv); err != nil {
		panic(err)
	}
	waits.Tune()
	os.Exit(m.Run())
}

const shop = "/abs/path/shop"

// project opens a store with one project and the given agents.
func project(t testing.TB, cfg storetest.Config, names ...string) *maildir.Project {
	t.Helper()
	return projectIn(t, storetest.Open(t, cfg).Store, names...)
}

// projectIn is like project, but uses a store that is already open.
func projectIn(t testing.TB, s *maildir.Store, names ...string) *maildir.Project {
	t.Helper()
	p, err := s.EnsureProject(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, err := p.Agents.Register(t.Context(), maildir.Registration{Program: "x", Model: "y", Task: "z", NameHint: n}); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func send(t testing.TB, p *maildir.Project, from string, d maildir.Draft) *maildir.Sent {
	t.Helper()
	return sendFrom(t, p.Box(from, format.Origin{}), d)
}

// sendFrom is like send, but uses the given box.
func sendFrom(t testing.TB, b *maildir.Box, d maildir.Draft) *maildir.Sent {
	t.Helper()
	sent, err := b.Send(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func inbox(t testing.TB, p *maildir.Project, agent string) *maildir.InboxPage {
	t.Helper()
	page, err := p.Box(agent, format.Origin{}).Inbox(t.Context(), index.InboxQuery{Bodies: true, Limit: 200}, false, maildir.Waiting{})
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// TestSendToAll checks that each recipient in to, cc and bcc gets one copy with the right content.
func TestSendToAll(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "Cat", "Dan")
	m := send(t, p, "Ann", maildir.Draft{
		To:          []string{"Bob", "Bob"},
		CC:          []string{"Cat", "Bob"},
		BCC:         []string{"Dan", "Cat"},
		Subject:     " Hi ",
		Body:        "text\n\n",
		ThreadID:    "T-1",
		AckRequired: true,
	})
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

// TestBCCIsPrivate checks that the name of a bcc recipient appears only in the recipient's own copy and the sender's
// copy, and in no other file, commit or index row (Invariant I7).
func TestBCCIsPrivate(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "Hidden")
	if err := p.FlushHistory(t.Context()); err != nil { // the commits of the registrations may name the recipient
		t.Fatal(err)
	}
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, BCC: []string{"Hidden"}, Subject: "s", Body: "b"})
	if _, err := p.Box("Bob", format.Origin{}).Reply(t.Context(), m.ID, maildir.Draft{Body: "r"}); err != nil {
		t.Fatal(err)
	}
	if err := p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	var named []string
	err := maildir.TreeOf(p).Walk(t.Context(), "", func(path string, _ fs.DirEntry) error {
		data, err := os.ReadFile(filepath.Join(p.Dir(), path))
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
	log, err := exec.Command("git", "-C", p.Dir(), "log", "--format=%an %ae %s %b", "--grep", m.ID).Output()
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

// TestConcurrentSends checks that after many senders have sent messages at the same time, every message that was sent
// successfully is in the inbox, newest first.
func TestConcurrentSends(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	const clients, each = 16, 12
	var all sync.WaitGroup
	ids := make([][]string, clients)
	for c := range clients {
		all.Go(func() {
			for i := range each {
				m, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob"}, Subject: fmt.Sprint(c, i), Body: "b"})
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

// TestReply checks the recipients, the subject and the thread of replies. See docs/reference/tools.md, "Sending".
func TestReply(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "Cat")
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, CC: []string{"Cat"}, Subject: "Plan", Body: "b", Importance: "high"})
	r, err := p.Box("Bob", format.Origin{}).Reply(t.Context(), m.ID, maildir.Draft{Body: "r"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"Ann"}, r.To); d != "" || r.Subject != "Re: Plan" || r.ThreadID != m.ID || r.InReplyTo != m.ID || r.Importance != "normal" {
		t.Errorf("%+v", r.Message)
	}
	asked, err := p.Box("Bob", format.Origin{}).Reply(t.Context(), m.ID, maildir.Draft{Body: "ack it", AckRequired: true})
	if err != nil || asked.Importance != "high" {
		t.Errorf("a reply that requests an acknowledgement, to a message of high importance: %+v, %v", asked, err)
	}
	own, err := p.Box("Ann", format.Origin{}).Reply(t.Context(), m.ID, maildir.Draft{Body: "more"})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([][]string{{"Bob"}, {"Cat"}}, [][]string{own.To, own.CC}); d != "" {
		t.Error(d)
	}
	rr, err := p.Box("Ann", format.Origin{}).Reply(t.Context(), r.ID, maildir.Draft{Body: "rr"})
	if err != nil || rr.Subject != "Re: Plan" || rr.ThreadID != m.ID {
		t.Errorf("%+v %v", rr, err)
	}
	thread, err := p.Thread(t.Context(), m.ID, false)
	if err != nil || len(thread) != 5 {
		t.Errorf("%d in the thread, %v", len(thread), err)
	}
}

// TestReplyToUncleanSubject checks that a message can be answered even if a send with the message's subject would be
// refused.
func TestReplyToUncleanSubject(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "Plan", Body: "b"})
	m.Subject, m.Seal = "Plan\x1b[2J\n\u202eB", ""
	put(t, p, format.CanonicalPath(m.ID, m.Created), string(format.FormatMessage(&m.Message)))
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if sent := reply(t, p, "Bob", m.ID); sent.Subject != "Re: Plan [2J  B" {
		t.Errorf("the answer's subject is %q", sent.Subject)
	}
}

// TestKeyConcurrently checks that if many goroutines send a message with the same key, it is delivered once.
func TestKeyConcurrently(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "Cat")
	var all sync.WaitGroup
	var ids sync.Map
	for range 12 {
		all.Go(func() {
			m, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob"}, BCC: []string{"Cat"}, Subject: "s", Body: "b", Key: "k"})
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
	if m, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b", Key: "k"}); err != nil || m.Again {
		t.Errorf("other recipients are another message: %+v %v", m, err)
	}
	taken := maildir.Draft{To: []string{"Cat", "Bob"}, Subject: "other", Body: "b", Key: "k"}
	if _, err := p.Box("Ann", format.Origin{}).Send(t.Context(), taken); !errors.Is(err, maildir.ErrConflict) {
		t.Errorf("got %v, want conflict", err)
	}
	same := maildir.Draft{To: []string{"Bob"}, BCC: []string{"Cat"}, Subject: "s", Body: "b", Key: "k"}
	other := p.Box("Ann", format.Origin{Auth: "uid:1000", Door: format.DoorStdio})
	if m := sendFrom(t, other, same); !m.Again {
		t.Error("the same mail through another channel is a different message")
	}
	text := same
	text.TextOnly = true
	if _, err := p.Box("Ann", format.Origin{}).Send(t.Context(), text); !errors.Is(err, maildir.ErrConflict) {
		t.Errorf("got %v, want conflict: the text is now not markdown", err)
	}
}

// await waits until ok returns true.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	waits.Until(t, "what the test waits for", ok)
}

// TestFanout checks that sends and replies are refused if the message's size times the number of its recipients in
// to, cc and bcc exceeds the limit.
func TestFanout(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{Fanout: 10_000, NoWatcher: true}, "Ann", "Bob", "Cat", "Dan")
	big := strings.Repeat("x", 4_000)
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: strings.Repeat("x", 9_000)})
	first := send(t, p, "Ann", maildir.Draft{To: []string{"Bob", "Cat"}, Subject: "s", Body: big, Key: "k"})
	_, sent := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Bob"}, CC: []string{"Cat"}, BCC: []string{"Dan"}, Subject: "s", Body: big})
	_, replied := p.Box("Bob", format.Origin{}).Reply(t.Context(), first.ID, maildir.Draft{To: []string{"Ann", "Cat", "Dan"}, Body: big})
	for _, err := range []error{sent, replied} {
		if !errors.Is(err, maildir.ErrTooLarge) {
			t.Fatalf("got %v", err)
		}
		for _, part := range []string{"recipients: 3", "4000 bytes", "10000"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in: %v", part, err)
			}
		}
	}
	if page := inbox(t, p, "Dan"); page.Total != 0 {
		t.Errorf("delivered: %+v", page)
	}
}

// TestMailboxDepth checks that a mailbox does not get more unread messages than the limit if the drafts are Bounded,
// even if many agents send at the same time.
func TestMailboxDepth(t *testing.T) {
	t.Parallel()
	const depth = 5
	p := project(t, storetest.Config{Depth: depth}, "Ann", "Bob", "Cat")
	draft := func(key string, to ...string) maildir.Draft {
		return maildir.Draft{To: to, Subject: "s", Body: key, Key: key, Bounded: true}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var kept []string
	for i := range 8 * depth {
		all.Go(func() {
			key := fmt.Sprint(i)
			_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), draft(key, "Bob"))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				kept = append(kept, key)
			} else if !errors.Is(err, maildir.ErrUnavailable) || !strings.Contains(err.Error(), "mailbox of Bob is full") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if page := inbox(t, p, "Bob"); len(kept) != depth || page.Unread != depth {
		t.Fatalf("%d sent, %d unread, want %d", len(kept), page.Unread, depth)
	}
	if m, err := p.Box("Ann", format.Origin{}).Send(t.Context(), draft(kept[0], "Bob")); err != nil || !m.Again {
		t.Errorf("sent again: %+v %v", m, err)
	}
	if _, err := p.Box("Ann", format.Origin{}).Send(t.Context(), draft("both", "Cat", "Bob")); !errors.Is(err, maildir.ErrUnavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
	if page := inbox(t, p, "Cat"); page.Total != 0 {
		t.Errorf("half delivered: %+v", page)
	}
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "not bounded", Body: "b"})
	for range 2 {
		if _, err := p.Box("Bob", format.Origin{}).Pop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	send(t, p, "Ann", draft("room again", "Bob"))
}
