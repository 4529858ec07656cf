package maildir_test

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/attachment"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// email returns an email from ann@example.org to Bob. If change is not nil, change modifies the email first.
func email(change func(*maildir.Incoming)) maildir.Incoming {
	in := maildir.Incoming{
		Mailboxes: []string{"Bob"}, From: "ann@example.org", To: []string{"Bob"}, Subject: "Order", Body: "Hello", Plain: true, Auth: "dmarc:example.org",
	}
	if change != nil {
		change(&in)
	}
	in.Raw = []byte("Subject: " + in.Subject + "\r\nMessage-ID: <" + in.MessageID + ">\r\n\r\n" + in.Body + "\r\n")
	in.Hash = sha256.Sum256(in.Raw)
	return in
}

func receive(t testing.TB, p *maildir.Project, in maildir.Incoming) string {
	t.Helper()
	id, errs := p.Post.Receive(t.Context(), in)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return id
}

// copiesOf lists the copies of a message in a project's tree, each as the agent's name and the folder, such as
// "Bob/inbox".
func copiesOf(t testing.TB, p *maildir.Project, id string) (all []string) {
	t.Helper()
	files, err := filepath.Glob(p.Dir() + "/agents/*/*/*/*/*/" + id + ".md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		parts := strings.Split(strings.TrimPrefix(f, p.Dir()+"/"), "/")
		all = append(all, parts[1]+"/"+parts[2])
	}
	return all
}

// TestReceive checks that an email is stored as a canonical file, a copy for its recipient, and the raw message. If
// the same email arrives again, it must not be stored twice. If it arrives for another mailbox, only a copy must be
// added, and only that copy may name the bcc recipient.
func TestReceive(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	p := projectIn(t, s.Store, "Bob", "Cy")
	in := email(func(in *maildir.Incoming) {
		in.To, in.CC = []string{"Bob", "dora@elsewhere.example"}, []string{"eve@example.org"}
		in.HTML, in.BodyFromHTML, in.MessageID = "<p>Hello</p>", true, "1@example.org"
		in.Attachments = []attachment.File{attachment.Named("a.txt", []byte("text"))}
	})
	id := receive(t, p, in)
	for range 2 {
		if again := receive(t, p, in); again != id {
			t.Errorf("kept twice: %s, %s", id, again)
		}
	}
	if got := copiesOf(t, p, id); !slices.Equal(got, []string{"Bob/inbox"}) {
		t.Errorf("copies: %v", got)
	}
	in.Mailboxes = []string{"Cy"}
	for range 2 {
		if again := receive(t, p, in); again != id {
			t.Errorf("another message for another recipient: %s, %s", id, again)
		}
	}
	if got := copiesOf(t, p, id); !slices.Equal(got, []string{"Bob/inbox", "Cy/inbox"}) {
		t.Errorf("copies: %v", got)
	}
	in.Auth = "none"
	if other := receive(t, p, in); other == id {
		t.Error("an unproven email was treated as the same as a proven one")
	}
	for box, kind := range map[string]string{"Bob": "to", "Cy": "bcc"} {
		i := slices.IndexFunc(inbox(t, p, box).Messages, func(d index.Delivery) bool { return d.ID == id })
		d := inbox(t, p, box).Messages[i]
		if by, ok := s.VerifiedIn(&d.MessageRow); !ok || by.String() != "dmarc example.org" || d.Kind != kind {
			t.Errorf("%s: %q %v %s", box, by, ok, d.Kind)
		}
	}
	m, err := p.Message(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a.txt text/plain", "body.html text/html", "message.eml message/rfc822"}
	var got []string
	for _, a := range m.Attachments {
		got = append(got, a.Name+" "+a.MediaType)
		if data, err := os.ReadFile(filepath.Join(p.Dir(), a.Path)); err != nil || int64(len(data)) != a.Bytes {
			t.Error(a.Path, err)
		}
	}
	if !slices.Equal(got, want) || m.HTML != m.Attachments[1].Path || m.MessageID != "1@example.org" || m.MediaType != format.PlainText ||
		m.From != "ann@example.org" || !slices.Equal(m.To, []string{"Bob", "dora@elsewhere.example"}) || m.Door != format.DoorGateway ||
		m.ThreadID != "" || len(m.BCC) > 0 {
		t.Errorf("%+v", m)
	}
	if len(m.Receipts) != 1 || m.Receipts[0].Agent != "Bob" {
		t.Errorf("receipts of addresses at other sites: %+v", m.Receipts)
	}
}

// TestReceiveRefused checks that email for an unknown name is refused, and so is new email for a full mailbox. If a
// full mailbox gets an email that it already contains, the result must be the same as the first time.
func TestReceiveRefused(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{Depth: 1}, "Bob", "Cy")
	in := email(nil)
	receive(t, p, in)
	receive(t, p, in)
	full := func(in maildir.Incoming) {
		t.Helper()
		var e *maildir.Error
		if _, errs := p.Post.Receive(t.Context(), in); !errors.As(errs[0], &e) || e.What != refusal.MailboxFull {
			t.Errorf("%v", errs)
		}
	}
	full(email(func(in *maildir.Incoming) { in.Body = "another" }))
	for agent, want := range map[string]error{"Bob": maildir.ErrUnavailable, "Cy": nil} {
		if err := p.Post.HasRoom(t.Context(), agent); !errors.Is(err, want) {
			t.Errorf("%s: %v", agent, err)
		}
	}
	in.Mailboxes = []string{"Cy"}
	receive(t, p, in)
	in = email(func(in *maildir.Incoming) { in.Mailboxes = []string{"Nobody"} })
	if _, errs := p.Post.Receive(t.Context(), in); !errors.Is(errs[0], maildir.ErrNotFound) {
		t.Errorf("%v", errs)
	}
}

// TestReceiveTogether checks that receiving an email for several mailboxes of a project is one operation and one
// commit. If one mailbox cannot get the email, the other mailboxes must still get it. Receiving the same email again
// must change nothing.
func TestReceiveTogether(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{Depth: 1}, "Bob", "Cy", "Dan")
	receive(t, p, email(func(in *maildir.Incoming) { in.Mailboxes, in.Body = []string{"Dan"}, "fills Dan's mailbox" }))
	if err := p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := commits(t, p)
	in := email(func(in *maildir.Incoming) { in.Mailboxes = []string{"Bob", "Nobody", "Cy", "Dan", "Bob"} })
	var first string
	for again := range 2 {
		id, errs := p.Post.Receive(t.Context(), in)
		var full *maildir.Error
		if len(errs) != 5 || errs[0] != nil || !errors.Is(errs[1], maildir.ErrNotFound) || errs[2] != nil || !errors.As(errs[3], &full) ||
			full.What != refusal.MailboxFull || errs[4] != nil {
			t.Fatalf("%d: %v", again, errs)
		}
		if first = cmp.Or(first, id); id != first {
			t.Errorf("now it is %s, before it was %s", id, first)
		}
	}
	if err := p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := commits(t, p) - before; n != 1 {
		t.Errorf("%d commits", n)
	}
	for _, agent := range []string{"Bob", "Cy"} {
		page, err := p.Box(agent, format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, false, maildir.Waiting{})
		if err != nil || len(page.Messages) != 1 || page.Messages[0].ID != first {
			t.Errorf("%s: %+v, %v", agent, page, err)
		}
	}
}

// commits counts the commits of a project.
func commits(t *testing.T, p *maildir.Project) int {
	t.Helper()
	return len(strings.Fields(gitIn(t, p.Dir(), "rev-list", "HEAD")))
}

// TestReceiveLarge checks that a message is stored without the parts that exceed the limits of a message file.
func TestReceiveLarge(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{MaxFile: 300 << 10}, "Bob")
	id := receive(t, p, email(func(in *maildir.Incoming) {
		in.Body = strings.Repeat("äöü", 100<<10)
		for range 500 {
			in.CC = append(in.CC, strings.Repeat("x", 60)+"@"+strings.Repeat("a.", 120)+"example")
			in.References = append(in.References, strings.Repeat("r", 900)+"@example.org")
		}
		for range 200 {
			in.Attachments = append(in.Attachments, attachment.Named(strings.Repeat("n", 200)+".txt", []byte(in.Subject)))
		}
	}))
	m, err := p.Message(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.CC) < 100 || len(m.References) < 10 || len(m.Attachments) != 201 || len(m.Body) < 10<<10 {
		t.Errorf("%d cc, %d references, %d attachments, %d bytes", len(m.CC), len(m.References), len(m.Attachments), len(m.Body))
	}
}

// TestReceiveThread checks that emails join threads by the ids in their headers, regardless of the order in which they
// arrive.
func TestReceiveThread(t *testing.T) {
	t.Parallel()
	p := project(t, ownedBy(500), "Ann", "Bob")
	ours := send(t, p, "Bob", maildir.Draft{To: []string{"Ann"}, Subject: "s", Body: "b", ThreadID: "TKT-1"})
	ids := map[string]string{}
	for _, c := range []struct{ id, replyTo, references, thread string }{
		{"root@x.example", "", "", ""},
		{"a@x.example", "root@x.example", "root@x.example", "{root@x.example}"},
		{"b@x.example", "", "root@x.example a@x.example gone@x.example", "{root@x.example}"},
		{"c@x.example", "b@x.example", "", "{root@x.example}"},
		{"late2@x.example", "late1@x.example", "late@x.example late1@x.example", "late@x.example"},
		{"late1@x.example", "", "late@x.example", "late@x.example"},
		{"late@x.example", "", "", "late@x.example"},
		{"late3@x.example", "late@x.example", "", "late@x.example"},
		{"d@x.example", ours.ID + "@mailtree.local", "", "TKT-1"},
		{"guess@x.example", "TKT-1", "TKT-1", ""}, // an email must not join a thread by guessing its name
		{"TKT-1", "", "", ""},
		{"", "", "", ""},
	} {
		id := receive(t, p, email(func(in *maildir.Incoming) {
			in.MessageID, in.InReplyTo, in.References, in.Body = c.id, c.replyTo, strings.Fields(c.references), c.id
		}))
		ids[c.id] = id
		m, err := p.Message(t.Context(), id)
		want := c.thread
		if name, ok := strings.CutPrefix(want, "{"); ok {
			want = ids[strings.TrimSuffix(name, "}")]
		}
		if err != nil || m.ThreadID != want {
			t.Errorf("%s: thread %q, %v; want %q", c.id, m.ThreadID, err, want)
		}
		if c.replyTo != "" {
			if known := cmp.Or(ids[c.replyTo], strings.TrimSuffix(c.replyTo, "@mailtree.local")); m.InReplyTo != known {
				t.Errorf("%s: in reply to %q, want %q", c.id, m.InReplyTo, known)
			}
		}
	}
	m, err := p.Message(t.Context(), ids["b@x.example"])
	if err != nil || !slices.Equal(m.References, []string{ids["root@x.example"], ids["a@x.example"], "gone@x.example"}) {
		t.Errorf("%v %v", m.References, err)
	}
	for id, want := range map[string]string{
		"b@x.example": " root@x.example a@x.example gone@x.example", "late2@x.example": "late1@x.example late@x.example late1@x.example",
		"c@x.example": "b@x.example root@x.example a@x.example gone@x.example b@x.example", "d@x.example": ours.ID + " " + ours.ID,
	} {
		l, err := openBox(t, p, "Bob", 500).Read(t.Context(), maildir.RawQuery{ID: ids[id]})
		if err != nil || l.InReplyTo+" "+strings.Join(l.References, " ") != want {
			t.Errorf("%s answers %q, after %q, %v; want %q", id, l.InReplyTo, l.References, err, want)
		}
	}
}

// TestAnswerByMessageID checks that an agent that has received an email can answer it by its original Message-ID. For
// other agents, the id must be unknown.
func TestAnswerByMessageID(t *testing.T) {
	t.Parallel()
	p := project(t, ownedBy(500), "Ann", "Bob", "Cy")
	id := receive(t, p, email(func(in *maildir.Incoming) { in.MessageID = "1@example.org" }))
	answer := func(from string) *maildir.Sent {
		sent, err := openBox(t, p, from, 500).Send(t.Context(), maildir.Draft{To: []string{"Ann"}, Body: "b", InReplyTo: "1@example.org"})
		if err != nil {
			t.Fatal(err)
		}
		return sent
	}
	if got := answer("Bob"); got.InReplyTo != id || got.ThreadID != id {
		t.Errorf("%+v", got)
	}
	if got := answer("Cy"); got.InReplyTo != "1@example.org" || got.ThreadID == id {
		t.Errorf("%+v", got)
	}
}

// TestReplyTo checks that a reply goes to an email's Reply-To addresses only if the mailbox trusts the sender.
func TestReplyTo(t *testing.T) {
	t.Parallel()
	cfg := ownedBy(500)
	cfg.Outside.Allow = []string{"*"}
	p := project(t, cfg, "Bob")
	at := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	id := receive(t, p, email(func(in *maildir.Incoming) { in.Date, in.ReplyTo = at, []string{"list@example.net"} }))
	m, err := p.Message(t.Context(), id)
	if err != nil || !m.Date.Equal(at) || !slices.Equal(m.ReplyTo, []string{"list@example.net"}) {
		t.Errorf("%+v %v", m, err)
	}
	answered := func(want string) {
		t.Helper()
		sent, err := p.Box("Bob", format.Origin{}).Reply(t.Context(), id, maildir.Draft{Body: "b"})
		if err != nil || !slices.Equal(sent.To, []string{want}) {
			t.Errorf("%+v %v, want %s", sent, err, want)
		}
	}
	answered("ann@example.org")
	if err := openBox(t, p, "Bob", 500).TrustSender("ann@example.org"); err != nil {
		t.Fatal(err)
	}
	answered("list@example.net")
}

// TestReceiveAtOnce checks that messages of a thread stay in one thread even if they arrive at the same time. A
// message that arrives for several mailboxes at the same time must be stored as one message.
func TestReceiveAtOnce(t *testing.T) {
	t.Parallel()
	boxes := []string{"Bob", "Cy", "Dee"}
	p := project(t, storetest.Config{NoWatcher: true}, boxes...)
	var all sync.WaitGroup
	for i := range 20 {
		root := string(rune('a'+i)) + "@x.example"
		for _, id := range []string{root, "re-" + root, "re2-" + root} {
			for _, box := range boxes {
				all.Go(func() {
					receive(t, p, email(func(in *maildir.Incoming) {
						in.Mailboxes, in.MessageID, in.To = []string{box}, id, nil
						if id != root {
							in.References = []string{root}
						}
					}))
				})
			}
		}
	}
	all.Wait()
	threads := map[string]int{}
	for _, m := range inbox(t, p, "Bob").Messages {
		threads[cmp.Or(m.ThreadID, m.ID)]++
		if got := copiesOf(t, p, m.ID); len(got) != len(boxes) {
			t.Errorf("%s: %v", m.MessageID, got)
		}
	}
	if len(threads) != 20 {
		t.Errorf("%d threads: %v", len(threads), threads)
	}
}

// TestTrustedSenders checks that mail from another domain is trusted if that domain vouches for it and the sender is
// on the mailbox's list. The list must be deleted with the mailbox.
func TestTrustedSenders(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, ownedBy(500))
	p := projectIn(t, s.Store, "Bob")
	b := openBox(t, p, "Bob", 500)
	trust := func(from, auth string) string {
		t.Helper()
		id := receive(t, p, email(func(in *maildir.Incoming) { in.From, in.Auth, in.Body = from, auth, from+auth }))
		l, err := b.Read(t.Context(), maildir.RawQuery{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return l.Trust
	}
	if got := trust("ann@example.org", "dmarc:example.org"); got != maildir.Untrusted {
		t.Errorf("without a list: %s", got)
	}
	for _, sender := range []string{"Ann@Example.org", "@example.net", "@example.net", "ann@example.org"} {
		if err := b.TrustSender(sender); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := b.TrustedSenders(); err != nil || !slices.Equal(got, []string{"@example.net", "ann@example.org"}) {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range []string{"", "Bob", "@", "a@", "a b@example.org", "@[1.2.3.4]"} {
		if err := b.TrustSender(bad); !errors.Is(err, maildir.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, c := range []struct{ from, auth, want string }{
		{"ann@example.org", "dmarc:example.org", maildir.Trusted},
		{"ann@example.org", "none", maildir.Untrusted},
		{"ann@example.org", "dmarc:example.net", maildir.Untrusted},
		{"bob@example.org", "dmarc:example.org", maildir.Untrusted},
		{"who@example.net", "dmarc:example.net", maildir.Trusted},
		{"who@sub.example.net", "dmarc:sub.example.net", maildir.Untrusted},
		{"who@notexample.net", "dmarc:notexample.net", maildir.Untrusted},
	} {
		if got := trust(c.from, c.auth); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.from, c.auth, got, c.want)
		}
	}
	if err := b.DistrustSender("ANN@example.org"); err != nil {
		t.Fatal(err)
	}
	if err := b.DistrustSender("ann@example.org"); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("%v", err)
	}
	const force = true
	if _, err := b.Delete(t.Context(), force); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(s.Root(), "trusted_senders.json")); err != nil || strings.TrimSpace(string(data)) != "{}" {
		t.Errorf("%s %v", data, err)
	}
}

// TestUntrustedWakesNobody checks that a session gets notices only about trusted mail, no matter how much untrusted
// mail from other domains arrives.
func TestUntrustedWakesNobody(t *testing.T) {
	t.Parallel()
	p, k := sleeping(t, storetest.Config{User: func() int { return 500 }})
	spam := func(n int, auth string) {
		t.Helper()
		for range n {
			receive(t, p, email(func(in *maildir.Incoming) { in.Auth, in.Body = auth, time.Now().String() }))
		}
	}
	told := func(want int) {
		t.Helper()
		all, err := p.Sessions.IdleSeats(t.Context(), maildir.IdleQuery{Agent: "Bob", Windows: true})
		if err != nil || len(all) != min(want, 1) {
			t.Errorf("sleepers %+v, %v", all, err)
		}
		n, err := p.Sessions.Tell(t.Context(), k)
		if err != nil || n.New != want || n.Unread != want {
			t.Errorf("told %+v, %v; want %d", n, err, want)
		}
		p.Sessions.ContextCut(k)
	}
	spam(3, "dmarc:example.org")
	told(0)
	toBob(t, p)
	spam(210, "none")
	told(1)
	if err := openBox(t, p, "Bob", 500).TrustSender("@example.org"); err != nil {
		t.Fatal(err)
	}
	told(4)
}

// TestMailboxAt checks that an address belongs to the project that owners.json lists for it, or otherwise to the
// default project, and that no other project can get the address.
func TestMailboxAt(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, ownedBy(500))
	var projects []*maildir.Project
	for _, key := range []string{shop, maildir.DefaultProject} {
		p, err := s.EnsureProject(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		projects = append(projects, p)
	}
	backend, def := projects[0], projects[1]
	create := func(p *maildir.Project, name string, uid int, want error) {
		t.Helper()
		if _, err := p.As(maildir.Caller{UID: uid}, format.Origin{}).CreateMailbox(t.Context(), name); !errors.Is(err, want) {
			t.Errorf("%s in %s by %d: %v, want %v", name, p.Slug, uid, err, want)
		}
	}
	for _, p := range projects {
		if err := p.Agents.EnsureAgent(t.Context(), "agent", maildir.Registration{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := backend.Agents.EnsureAgent(t.Context(), "hidden", maildir.Registration{}); err != nil {
		t.Fatal(err)
	}
	create(backend, "ops", 500, nil)
	create(def, "ops", 500, maildir.ErrInvalid)
	create(def, "OPS", 500, maildir.ErrInvalid)
	create(def, "ops", 501, maildir.ErrDenied)
	create(def, "news", 501, nil)
	create(backend, "news", 501, maildir.ErrInvalid)
	create(def, "gone", 500, nil)
	removeAgent(t, def, "gone")
	create(backend, "gone", 500, nil)
	for local, want := range map[string]*maildir.Project{
		"ops": backend, "Ops": backend, "news": def, "agent": def, "gone": backend, "hidden": nil, "nobody": nil, "op": nil, "o_s": nil,
		"a*": nil,
	} {
		p, agent, err := s.MailboxAt(t.Context(), local)
		if p != want || want != nil && !strings.EqualFold(agent, local) || (err == nil) != (want != nil) {
			t.Errorf("%s: %v %s %v", local, p, agent, err)
		}
	}
	var at sync.WaitGroup
	made := make(chan *maildir.Mailbox, len(projects))
	for _, p := range projects {
		at.Go(func() {
			if m, err := p.As(maildir.Caller{UID: 500}, format.Origin{}).CreateMailbox(t.Context(), "both"); err == nil {
				made <- m
			}
		})
	}
	at.Wait()
	if len(made) != 1 {
		t.Errorf("%d mailboxes with the same address were created at the same time", len(made))
	}
}
