package maildir_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/backup"
	"mailtree/maildir/crossing"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/storedir"
)

// pair is a store with the projects back and front.
type pair struct {
	*storetest.Store
	back, front *maildir.Project
}

// openPair opens a store with two projects. Ann, Bob and Cat are agents of the project back, and Xia, Yan and Zoe are
// agents of front.
func openPair(t testing.TB, cfg storetest.Config) *pair {
	t.Helper()
	s := storetest.Open(t, cfg)
	return &pair{s, projectAt(t, s.Store, "/code/back", "Ann", "Bob", "Cat"), projectAt(t, s.Store, "/code/front", "Xia", "Yan", "Zoe")}
}

// projectAt returns a project with the given agents. It creates the project and the agents if they do not exist.
func projectAt(t testing.TB, s *maildir.Store, key string, names ...string) *maildir.Project {
	t.Helper()
	p, err := s.EnsureProject(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if _, err := p.Agents.Whois(t.Context(), n); err == nil {
			continue
		}
		if _, err := p.Agents.Register(t.Context(), maildir.Registration{Program: "x", Model: "y", Task: "z", NameHint: n}); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// in returns an agent's address in other projects.
func in(p *maildir.Project, agent string) string { return agent + "@" + p.Slug }

// items lists the names of the files that contain a project's undelivered mail to other projects.
func items(t testing.TB, p *maildir.Project) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(filepath.Dir(p.Dir()), crossing.FolderName))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// message reads a message file from a project's tree.
func message(t testing.TB, p *maildir.Project, path string) *format.Message {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.Dir(), path))
	if err != nil {
		t.Fatal(err)
	}
	m, err := format.ParseMessage(format.Locate(path).ID, data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestCrossing checks the files that are created in both trees when a message is sent to agents of two projects: the
// names in these files, their seals and the attachment. Each bcc recipient must be named only in the recipient's own
// copy and in the sender's copy. No mail may be left waiting.
func TestCrossing(t *testing.T) {
	t.Parallel()
	s := openPair(t, storetest.Config{})
	m := send(t, s.back, "Ann", maildir.Draft{
		To:          []string{"Bob", "Xia@front"},
		CC:          []string{in(s.front, "Yan"), in(s.back, "Cat")},
		BCC:         []string{"Zoe@front"},
		Subject:     "Plan",
		Body:        "the plan",
		AckRequired: true,
		Attachments: []string{"data:text/plain,flow"},
		Key:         "once",
	})
	if len(m.Queued) > 0 || !slices.Equal(m.To, []string{"Bob", in(s.front, "Xia")}) || !slices.Equal(m.CC, []string{in(s.front, "Yan"), "Cat"}) {
		t.Fatalf("%+v", m)
	}
	for _, at := range []struct {
		p     *maildir.Project
		from  string
		to    []string
		cc    []string
		boxes map[string][]string // for each folder, the bcc recipients listed in the copy there
	}{
		{s.back, "Ann", []string{"Bob", in(s.front, "Xia")}, []string{in(s.front, "Yan"), "Cat"}, map[string][]string{
			"messages": nil, "agents/Ann/outbox": {in(s.front, "Zoe")}, "agents/Bob/inbox": nil, "agents/Cat/inbox": nil,
		}},
		{s.front, in(s.back, "Ann"), []string{in(s.back, "Bob"), "Xia"}, []string{"Yan", in(s.back, "Cat")}, map[string][]string{
			"messages": nil, "agents/Xia/inbox": nil, "agents/Yan/inbox": nil, "agents/Zoe/inbox": {"Zoe"},
		}},
	} {
		files := filesOf(t, at.p, m.ID)
		if len(files) != len(at.boxes) {
			t.Errorf("%s has %v", at.p.Slug, files)
		}
		for _, path := range files {
			got := message(t, at.p, path)
			if got.From != at.from || !slices.Equal(got.To, at.to) || !slices.Equal(got.CC, at.cc) || got.Project != at.p.HumanKey() {
				t.Errorf("%s: %s from %s to %v, %v", at.p.Slug, path, got.From, got.To, got.CC)
			}
			dir, _, _ := strings.Cut(path, "/2")
			if bcc, known := at.boxes[dir]; !known || !slices.Equal(got.BCC, bcc) {
				t.Errorf("%s: %s has bcc %v", at.p.Slug, path, got.BCC)
			}
			if _, ok := s.VerifiedIn(&index.MessageRow{Project: at.p.Slug, Message: *got}); !ok {
				t.Errorf("%s: %s is not verified", at.p.Slug, path)
			}
			a, err := at.p.Attachment(got.Attachments[0].SHA1, 100)
			if err != nil || string(a.Data) != "flow" {
				t.Errorf("%s: attachment %v", at.p.Slug, err)
			}
		}
		if err := at.p.FlushHistory(t.Context()); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(git(t, at.p, "log", "--format=%B")) {
			if strings.Contains(line, "Zoe") && !strings.Contains(line, "register") && !strings.HasPrefix(line, "Agent:") {
				t.Errorf("%s: the history names a bcc recipient: %s", at.p.Slug, line)
			}
		}
	}
	if left := items(t, s.back); len(left) > 0 {
		t.Errorf("waits: %v", left)
	}
	again := send(t, s.back, "Ann", maildir.Draft{To: m.To, CC: m.CC, BCC: m.BCC, Subject: "Plan", Body: "the plan", AckRequired: true,
		Attachments: []string{"data:text/plain,flow"}, Key: "once"})
	if !again.Again || again.ID != m.ID || len(again.Queued) > 0 {
		t.Errorf("sent again: %+v", again)
	}
}

// TestCrossingReply checks that a reply from the other project reaches the author in the same thread and acknowledges
// the message. The author must see the receipts from both projects, and a recipient must see only the receipts of the
// recipients in to and cc.
func TestCrossingReply(t *testing.T) {
	t.Parallel()
	s := openPair(t, storetest.Config{})
	m := send(t, s.back, "Ann", maildir.Draft{To: []string{"Bob", "Xia@front"}, BCC: []string{"Zoe@front"}, Subject: "Ready?", Body: "b", AckRequired: true})
	r, err := s.front.Box("Xia", format.Origin{}).Reply(t.Context(), m.ID, maildir.Draft{Body: "yes"})
	if err != nil || !slices.Equal(r.To, []string{in(s.back, "Ann")}) || r.ThreadID != m.ID || !r.Acked || len(r.Queued) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	got := inbox(t, s.back, "Ann").Messages
	if len(got) != 1 || got[0].ID != r.ID || got[0].From != in(s.front, "Xia") || got[0].ThreadID != m.ID || got[0].InReplyTo != m.ID {
		t.Fatalf("%+v", got)
	}
	page, err := s.back.Box("Ann", format.Origin{}).Inbox(t.Context(), index.InboxQuery{ID: m.ID}, false, maildir.Waiting{})
	if err != nil {
		t.Fatal(err)
	}
	if got := receipts(page.Messages[0].Receipts); got != "Bob delivered, "+in(s.front, "Xia")+" delivered acknowledged, "+in(s.front, "Zoe")+" delivered" {
		t.Errorf("Ann sees %s", got)
	}
	row, err := s.front.Message(t.Context(), m.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := receipts(row.Receipts); got != in(s.back, "Bob")+" delivered, Xia delivered acknowledged" {
		t.Errorf("front sees %s", got)
	}
	thread, err := s.back.ThreadPage(t.Context(), index.ThreadQuery{Thread: m.ID, Receipts: true})
	if err != nil || len(thread.Messages) != 2 {
		t.Fatal(thread, err)
	}
	if got := receipts(thread.Messages[0].Receipts); got != "Bob delivered, "+in(s.front, "Xia")+" delivered acknowledged" {
		t.Errorf("the thread shows %s", got)
	}
}

// receipts returns the receipts as text.
func receipts(all []index.Receipt) string {
	var said []string
	for _, r := range all {
		text := r.Agent
		if r.Delivered {
			text += " delivered"
		}
		if r.Status != "" {
			text += " " + r.Status
		}
		if r.Acked {
			text += " acknowledged"
		}
		said = append(said, text)
	}
	return strings.Join(said, ", ")
}

// blocked makes writes to an agent's inbox fail while its embedded Bool is true.
type blocked struct {
	atomic.Bool
	agent string
}

func (b *blocked) fail(p string) error {
	if b.Load() && strings.Contains(p, "agents/"+b.agent+"/inbox") {
		return syscall.EIO
	}
	return nil
}

// TestCrossingQueued checks that a message waits while the server cannot write to the other project's tree, and that
// the sender's receipt says so. When the tree is writable again, the server must deliver the message exactly once,
// without another call.
func TestCrossingQueued(t *testing.T) {
	t.Parallel()
	disk := &blocked{agent: "Xia"}
	s := openPair(t, storetest.Config{Fail: disk.fail})
	disk.Store(true)
	m := send(t, s.back, "Ann", maildir.Draft{To: []string{"Bob", "Xia@front"}, Subject: "s", Body: "b"})
	if !slices.Equal(m.Queued, []string{s.front.Slug}) || len(items(t, s.back)) != 1 {
		t.Fatalf("%+v, %v", m, items(t, s.back))
	}
	row, err := s.back.Message(t.Context(), m.ID)
	if err != nil || receipts(row.Receipts) != "Bob delivered, "+in(s.front, "Xia")+" queued" {
		t.Error(receipts(row.Receipts), err)
	}
	waiting, err := maildir.CrossingWaits(s.Root(), []string{s.back.Slug, s.front.Slug})
	if err != nil || len(waiting) != 1 || waiting[0].Messages != 1 || waiting[0].To != s.front.Slug {
		t.Error(waiting, err)
	}
	if got := inbox(t, s.front, "Xia").Messages; len(got) > 0 {
		t.Error("delivered:", got)
	}
	disk.Store(false)
	waits.Until(t, "the message to be delivered", func() bool { return len(items(t, s.back)) == 0 })
	if got := inbox(t, s.front, "Xia").Messages; len(got) != 1 || got[0].ID != m.ID {
		t.Error("delivered:", got)
	}
}

// TestCrossingStart checks that a starting server delivers a waiting message if the message is in the sender's tree,
// and drops it otherwise. A message that has already been delivered must not be delivered again.
func TestCrossingStart(t *testing.T) {
	t.Parallel()
	root, disk := t.TempDir(), &blocked{agent: "Xia"}
	s := openPair(t, storetest.Config{Root: root, Fail: disk.fail, NoCheck: true})
	send(t, s.back, "Ann", maildir.Draft{To: []string{"Xia@front"}, Subject: "before", Body: "b"})
	disk.Store(true)
	kept := send(t, s.back, "Ann", maildir.Draft{To: []string{"Xia@front"}, Subject: "kept", Body: "b"})
	lost := send(t, s.back, "Ann", maildir.Draft{To: []string{"Xia@front"}, Subject: "lost", Body: "b"})
	s.Stop()
	for _, path := range filesOf(t, s.back, lost.ID) {
		if err := os.Remove(filepath.Join(s.back.Dir(), path)); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(filepath.Dir(s.back.Dir()), crossing.FolderName)
	item, err := os.ReadFile(filepath.Join(dir, kept.ID+"-"+s.front.Slug+".json"))
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "msg_x-"+s.front.Slug+".json")
	for file, data := range map[string][]byte{
		foreign:                      bytes.Replace(item, []byte(kept.ID), []byte("msg_x"), 2),
		filepath.Join(dir, ".new-1"): item[:20],
	} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = openPair(t, storetest.Config{Root: root})
	waits.Until(t, "nothing to wait", func() bool { return slices.Equal(items(t, s.back), []string{filepath.Base(foreign)}) })
	if got := subjects(t, s.front, "Xia"); got != "kept before" {
		t.Errorf("Xia has %q", got)
	}
	s.Stop()
	if err := os.WriteFile(filepath.Join(dir, kept.ID+"-"+s.front.Slug+".json"), item, 0o600); err != nil {
		t.Fatal(err)
	}
	saving := filepath.Join(dir, ".new-2") // looks like the file of a send that begins right after the start
	s = openPair(t, storetest.Config{Root: root, Index: func(x index.Index) index.Index {
		if err := os.WriteFile(saving, item[:20], 0o600); err != nil {
			t.Error(err)
		}
		return x
	}})
	waits.Until(t, "nothing to wait", func() bool {
		return slices.Equal(items(t, s.back), []string{filepath.Base(saving), filepath.Base(foreign)})
	})
	if got := subjects(t, s.front, "Xia"); got != "kept before" {
		t.Errorf("after another start, Xia has %q", got)
	}
	if _, err := os.Stat(saving); err != nil {
		t.Errorf("the start removed the file of an item that was being written: %v", err)
	}
}

// subjects returns the subjects in an agent's inbox, newest first.
func subjects(t testing.TB, p *maildir.Project, agent string) string {
	t.Helper()
	var all []string
	for _, d := range inbox(t, p, agent).Messages {
		all = append(all, d.Subject)
	}
	return strings.Join(all, " ")
}

// TestCrossingGone checks that the sender of mail to a project that no longer exists gets a notice. The notice must not
// name any bcc recipient. Removing one project must not change the other project.
func TestCrossingGone(t *testing.T) {
	t.Parallel()
	root, disk := t.TempDir(), &blocked{agent: "Xia"}
	s := openPair(t, storetest.Config{Root: root, Fail: disk.fail, NoCheck: true})
	read := send(t, s.front, "Xia", maildir.Draft{To: []string{"Ann@back"}, Subject: "earlier", Body: "b"})
	disk.Store(true)
	m := send(t, s.back, "Ann", maildir.Draft{To: []string{"Xia@front"}, BCC: []string{"Zoe@front"}, Subject: "late", Body: "b"})
	s.Stop()
	if err := os.RemoveAll(filepath.Dir(storedir.Repo(root, s.front.Slug))); err != nil {
		t.Fatal(err)
	}
	again := storetest.Open(t, storetest.Config{Root: root, NoCheck: true}) // the index still contains the project front
	back := projectAt(t, again.Store, "/code/back")
	waits.Until(t, "nothing to wait", func() bool { return len(items(t, back)) == 0 })
	got := inbox(t, back, "Ann").Messages
	if len(got) != 2 || got[0].Subject != "Not delivered: late" || got[0].InReplyTo != m.ID || got[1].ID != read.ID {
		t.Fatalf("%+v", got)
	}
	if body := got[0].Body; !strings.Contains(body, "- Xia@"+s.front.Slug+"\n- a recipient in bcc\n") || strings.Contains(body, "Zoe") {
		t.Error(body)
	}
	_, err := back.Box("Ann", format.Origin{}).Reply(t.Context(), read.ID, maildir.Draft{Body: "b"})
	if !errors.Is(err, maildir.ErrNotFound) || !strings.Contains(err.Error(), "no project") {
		t.Errorf("reply: %v", err)
	}
}

// TestCrossingLeft checks that a recipient that has been removed from the other project gets no copy, and that the
// sender gets a notice.
func TestCrossingLeft(t *testing.T) {
	t.Parallel()
	root, disk := t.TempDir(), &blocked{agent: "Xia"}
	s := openPair(t, storetest.Config{Root: root, Fail: disk.fail, NoCheck: true})
	disk.Store(true)
	m := send(t, s.back, "Ann", maildir.Draft{To: []string{"Xia@front", "Yan@front"}, Subject: "late", Body: "b"})
	if len(m.Queued) != 1 {
		t.Fatalf("%+v", m)
	}
	s.Stop()
	if err := os.RemoveAll(filepath.Join(s.front.Dir(), "agents", "Xia")); err != nil {
		t.Fatal(err)
	}
	again := storetest.Open(t, storetest.Config{Root: root})
	back, front := projectAt(t, again.Store, "/code/back"), projectAt(t, again.Store, "/code/front")
	waits.Until(t, "nothing to wait", func() bool { return len(items(t, back)) == 0 })
	if got := subjects(t, front, "Yan"); got != "late" {
		t.Errorf("Yan has %q", got)
	}
	if got := subjects(t, back, "Ann"); got != "Not delivered: late" {
		t.Errorf("Ann has %q", got)
	}
}

// TestCrossingUndo checks that undoing a send withdraws the message in both projects, and that readers in both
// projects get a notice. A redo must send the message in both projects again.
func TestCrossingUndo(t *testing.T) {
	t.Parallel()
	s := openPair(t, storetest.Config{})
	m := send(t, s.back, "Ann", maildir.Draft{To: []string{"Bob", "Xia@front", "Yan@front"}, BCC: []string{"Zoe@front"}, Subject: "Wrong", Body: "b"})
	for agent, p := range map[string]*maildir.Project{"Bob": s.back, "Xia": s.front, "Zoe": s.front} {
		if _, err := p.Box(agent, format.Origin{}).Acknowledge(t.Context(), m.ID); err != nil {
			t.Fatal(err)
		}
	}
	u := undo(t, s.back, "Ann", "")
	if want := []string{"Bob", in(s.front, "Xia"), in(s.front, "Zoe")}; !slices.Equal(u.Readers, want) || len(u.Queued) > 0 {
		t.Errorf("%+v, want %v", u, want)
	}
	for _, p := range []*maildir.Project{s.back, s.front} {
		if left := filesOf(t, p, m.ID); len(left) > 0 {
			t.Errorf("%s has %v", p.Slug, left)
		}
	}
	for agent, want := range map[string]string{"Xia": "Withdrawn: Wrong", "Yan": "", "Zoe": "Withdrawn: Wrong"} {
		if got := subjects(t, s.front, agent); got != want {
			t.Errorf("%s has %q", agent, got)
		}
	}
	if got := subjects(t, s.back, "Bob"); got != "Withdrawn: Wrong" {
		t.Errorf("Bob has %q", got)
	}
	if _, err := s.back.Box("Ann", format.Origin{}).Redo(t.Context(), maildir.Undoing{}); err != nil {
		t.Fatal(err)
	}
	for agent, want := range map[string]string{"Xia": "Sent again: Wrong Withdrawn: Wrong Wrong", "Yan": "Wrong", "Zoe": "Sent again: Wrong Withdrawn: Wrong Wrong"} {
		if got := subjects(t, s.front, agent); got != want {
			t.Errorf("after the redo, %s has %q", agent, got)
		}
	}
	if d, err := s.back.Box("Ann", format.Origin{}).Delete(t.Context(), m.ID); err != nil || len(d.Queued) > 0 {
		t.Error(d, err)
	}
	if left := filesOf(t, s.front, m.ID); len(left) > 0 {
		t.Errorf("after the deletion, front has %v", left)
	}
	if left := items(t, s.back); len(left) > 0 {
		t.Errorf("waits: %v", left)
	}
}

// TestCrossingUndoQueued checks that a message never reaches the other project if the send is undone in time. If the
// server cannot write to the other project's tree, the undo must take effect in that project later.
func TestCrossingUndoQueued(t *testing.T) {
	t.Parallel()
	disk := &blocked{agent: "Xia"}
	s := openPair(t, storetest.Config{Fail: disk.fail})
	there := send(t, s.back, "Ann", maildir.Draft{To: []string{"Xia@front"}, Subject: "there", Body: "b"})
	disk.Store(true)
	never := send(t, s.back, "Ann", maildir.Draft{To: []string{"Xia@front"}, Subject: "never", Body: "b"})
	undo(t, s.back, "Ann", never.ID)
	u := undo(t, s.back, "Ann", there.ID)
	if !slices.Equal(u.Queued, []string{s.front.Slug}) {
		t.Errorf("%+v", u)
	}
	disk.Store(false)
	waits.Until(t, "nothing to wait", func() bool { return len(items(t, s.back)) == 0 })
	if got := subjects(t, s.front, "Xia"); got != "" {
		t.Errorf("Xia has %q", got)
	}
}

// TestCrossingRefused checks which addresses are refused, and that a refused message leaves no mail waiting.
func TestCrossingRefused(t *testing.T) {
	t.Parallel()
	s := openPair(t, storetest.Config{})
	projectAt(t, s.Store.Store, "/other/front", "Yan", "Una")
	third := projectAt(t, s.Store.Store, "/code/third", "Una")
	for to, want := range map[string]string{
		"Xia@front":        `Several projects are called front: use the project's slug instead, as in Xia@front-`,
		"Xia@nope":         `This machine has no project nope, so nothing was sent to "Xia@nope".`,
		"Xia@thrid":        `Did you mean Xia@` + third.Slug + `?`,
		"Una@third":        "",
		in(s.front, "Xai"): `No agent "Xai@` + s.front.Slug + `" in project /code/front: nothing was sent. Did you mean Xia@` + s.front.Slug + `?`,
		"Yan":              `No agent "Yan" in project /code/back, but several other projects have one: use one of the addresses Yan@front-`,
		"Xia":              "",
		"Nil":              `No agent "Nil" in project /code/back.`,
	} {
		_, err := s.back.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{to}, Subject: "s", Body: "b", Anywhere: true})
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", to, err, want)
		}
	}
	if _, err := s.back.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"Xia"}, Body: "b"}); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("a bare name without Anywhere: %v", err)
	}
	if got := subjects(t, s.front, "Xia"); got != "s" {
		t.Errorf("Xia has %q", got)
	}
	if left := items(t, s.back); len(left) > 0 {
		t.Errorf("waits: %v", left)
	}
}

// TestCrossingSaved checks that a file saved in an outbox is not sent to other projects, not even as a reply.
func TestCrossingSaved(t *testing.T) {
	t.Parallel()
	s := openPair(t, storetest.Config{})
	m := send(t, s.front, "Xia", maildir.Draft{To: []string{"Ann@back"}, Subject: "s", Body: "b"})
	saveFile(t, s.back, "agents/Ann/outbox/a.md", "---json\n{\"to\": [\"Bob\", \"Xia@front\"]}\n---\n\ntext\n")
	saveFile(t, s.back, "agents/Ann/outbox/b.md", "---json\n{\"in_reply_to\": \""+m.ID+"\"}\n---\n\ntext\n")
	waits.Until(t, "two notices", func() bool { return len(inbox(t, s.back, "Ann").Messages) == 3 })
	for _, d := range inbox(t, s.back, "Ann").Messages[:2] {
		if d.From != format.Postmaster || !strings.Contains(d.Body, "is never sent to other projects") {
			t.Errorf("%s: %s", d.Subject, d.Body)
		}
	}
	if got := subjects(t, s.front, "Xia") + subjects(t, s.back, "Bob"); got != "" {
		t.Errorf("sent: %s", got)
	}
}

// TestCrossingNoAddress checks which parties are treated as email addresses.
func TestCrossingNoAddress(t *testing.T) {
	t.Parallel()
	s := openPair(t, storetest.Config{Domains: []string{"mail"}, Outside: maildir.Outside{Allow: []string{"*", "front", "example.org"}}})
	core := maildir.StoreOf(s.back)
	for party, email := range map[string]bool{
		"Xia": false, "Xia@back": false, "Xia@example.org": true, "Xia@front": true, "Xia@FRONT": true, "Xia@mail": true, "Xia@a.b": true,
		"a b@back": true, "unknown-sender@invalid": true, "Xia@My Shop": false, "Xia@": true,
	} {
		if p := core.PartyOf(party); p.Email != email {
			t.Errorf("%s: %+v", party, p)
		}
	}
	m := send(t, s.back, "Ann", maildir.Draft{To: []string{"Xia@front"}, Subject: "s", Body: "b"})
	if got := len(items(t, s.back)) + len(inbox(t, s.front, "Xia").Messages); got > 0 || !slices.Equal(m.To, []string{"Xia@front"}) {
		t.Errorf("an allowed domain: %+v", m)
	}
}

// saveFile writes a file in a project's tree, as a user would.
func saveFile(t testing.TB, p *maildir.Project, path, text string) {
	t.Helper()
	file := filepath.Join(p.Dir(), path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCrossingWaits checks that an author can see which agents in another project still have to acknowledge or answer a
// message. Queries over all projects must count a message only once, no matter how many projects have copies of it.
func TestCrossingWaits(t *testing.T) {
	t.Parallel()
	s := openPair(t, storetest.Config{})
	m := send(t, s.back, "Ann", maildir.Draft{To: []string{"Bob", "Xia@front"}, BCC: []string{"Zoe@front"}, Subject: "Look", Body: "b", AckRequired: true})
	q := send(t, s.back, "Ann", maildir.Draft{To: []string{"Yan@front"}, Subject: "Ready?", Body: "b"})
	owed := func(open bool) (said []string) {
		w, err := s.back.Box("Ann", format.Origin{}).Waits(t.Context(), maildir.WaitsQuery{Open: open})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range w.Owed {
			said = append(said, o.Subject+": "+strings.Join(o.People, ", "))
		}
		slices.Sort(said)
		return said
	}
	if got := owed(false); !slices.Equal(got, []string{"Look: Bob, " + in(s.front, "Xia") + ", " + in(s.front, "Zoe"), "Ready?: " + in(s.front, "Yan")}) {
		t.Error(got)
	}
	if got := owed(true); !slices.Equal(got, []string{"Look: Bob, " + in(s.front, "Xia"), "Ready?: " + in(s.front, "Yan")}) {
		t.Error("without bcc:", got)
	}
	awaiting := func() (ids []string) {
		page, err := s.back.Box("Ann", format.Origin{}).Inbox(t.Context(), index.InboxQuery{AwaitingAck: true}, false, maildir.Waiting{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Messages {
			ids = append(ids, d.ID)
		}
		return ids
	}
	if got := awaiting(); !slices.Equal(got, []string{m.ID}) {
		t.Error("awaiting:", got)
	}
	if home, err := s.ProjectOf(t.Context(), format.KindCanonical, m.ID); err != nil || home != s.back {
		t.Error(home, err)
	}
	recent, err := s.Recent(t.Context(), 20)
	if err != nil || len(recent.Threads) != 2 {
		t.Errorf("%+v, %v", recent, err)
	}
	for agent, p := range map[string]*maildir.Project{"Bob": s.back, "Xia": s.front, "Zoe": s.front} {
		if _, err := p.Box(agent, format.Origin{}).Acknowledge(t.Context(), m.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.front.Box("Yan", format.Origin{}).Acknowledge(t.Context(), q.ID); err != nil {
		t.Fatal(err)
	}
	if got := len(owed(false)) + len(awaiting()); got > 0 {
		t.Error("still owed:", owed(false), awaiting())
	}
}

// packs is a history that calls its before function whenever a backup is about to copy the project.
type packs struct {
	history.Log
	before *func()
}

func (h packs) KeepPacks(ctx context.Context) (done func(), err error) {
	if *h.before != nil {
		(*h.before)()
	}
	return h.Log.KeepPacks(ctx)
}

// TestCrossingBackup checks that a restored store delivers mail that was waiting when the backup was made. It must
// also deliver mail that was sent during the backup, after the recipient's project was copied and before the sender's
// project was copied.
func TestCrossingBackup(t *testing.T) {
	t.Parallel()
	var before []*func()
	disk := &blocked{agent: "Xia"}
	s := openPair(t, storetest.Config{Fail: disk.fail, NoCheck: true, History: func(h history.Log) history.Log {
		before = append(before, new(func()))
		return packs{h, before[len(before)-1]}
	}})
	send(t, s.front, "Yan", maildir.Draft{To: []string{"Ann@back"}, Subject: "earlier", Body: "b"})
	disk.Store(true)
	late := send(t, s.back, "Ann", maildir.Draft{To: []string{"Xia@front"}, BCC: []string{"Zoe@front"}, Subject: "late", Body: "b"})
	*before[1] = func() { // called after the backup has copied the project "back"
		m := send(t, s.front, "Yan", maildir.Draft{To: []string{"Ann@back"}, Subject: "between", Body: "b"})
		if len(m.Queued) > 0 || subjects(t, s.back, "Ann") != "between earlier" {
			t.Errorf("%+v", m)
		}
	}
	var file bytes.Buffer
	if err := s.Backup(t.Context(), &file, "test"); err != nil {
		t.Fatal(err)
	}
	if left := items(t, s.front); len(left) > 0 {
		t.Errorf("after the backup, front has %v", left)
	}
	for _, how := range []backup.How{backup.Replace, backup.Copy} {
		root := filepath.Join(t.TempDir(), "restored")
		if _, err := backup.Restore(t.Context(), bytes.NewReader(file.Bytes()), root, how); err != nil {
			t.Fatal(err)
		}
		again := openPair(t, storetest.Config{Root: root})
		waits.Until(t, "nothing to wait", func() bool { return len(items(t, again.back))+len(items(t, again.front)) == 0 })
		if got := subjects(t, again.back, "Ann"); got != "between earlier" {
			t.Errorf("%v: Ann has %q", how, got)
		}
		for _, agent := range []string{"Xia", "Zoe"} {
			if got := inbox(t, again.front, agent).Messages; len(got) != 1 || got[0].ID != late.ID {
				t.Errorf("%v: %s has %+v", how, agent, got)
			}
		}
	}
}

// TestCrossingUnwatched checks that the watcher ignores the files that contain mail to other projects.
func TestCrossingUnwatched(t *testing.T) {
	t.Parallel()
	for rel, want := range map[string]bool{
		"back": true, "back/repo": true, "back/repo/crossing": true, "back/" + crossing.FolderName: false, "back/.x": false,
	} {
		if got := maildir.Watched(rel); got != want {
			t.Errorf("%s: %v", rel, got)
		}
	}
}

// TestCrossingGuest checks that another OS user can answer mail from another project, but cannot find out anything
// about other projects, either from error messages or by using a name without a project.
func TestCrossingGuest(t *testing.T) {
	t.Parallel()
	s := openPair(t, storetest.Config{User: func() int { return 1000 }})
	projectAt(t, s.Store.Store, "/other/front", "Una")
	guest := s.back.As(maildir.Caller{UID: 4242}, format.Origin{Auth: "uid:4242"})
	if _, err := guest.CreateMailbox(t.Context(), "gus"); err != nil {
		t.Fatal(err)
	}
	box, err := guest.Box(t.Context(), "gus")
	if err != nil {
		t.Fatal(err)
	}
	m := send(t, s.front, "Xia", maildir.Draft{To: []string{in(s.back, "gus")}, Subject: "s", Body: "b"})
	if r, err := box.Reply(t.Context(), m.ID, maildir.Draft{Body: "r"}); err != nil || !slices.Equal(r.To, []string{in(s.front, "Xia")}) {
		t.Errorf("%+v, %v", r, err)
	}
	for _, to := range []string{"Xia", "Xia@front", "Xai@" + s.front.Slug, "Xia@nope"} {
		_, err := box.Send(t.Context(), maildir.Draft{To: []string{to}, Subject: "s", Body: "b"})
		text := strings.ReplaceAll(answerText(err), to, "")
		if !errors.Is(err, maildir.ErrNotFound) || strings.Contains(text, "front") || strings.Contains(text, "Xia") {
			t.Errorf("%s: %v", to, err)
		}
	}
}
