package maildir_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/outgoing"
)

// outside configures a store that may send mail to example.org, and records the items that the store queues.
type outside struct {
	mu     sync.Mutex
	queued []string
}

func (o *outside) config() storetest.Config {
	return storetest.Config{Domains: []string{"mail.example.net"}, Outside: maildir.Outside{
		Allow: []string{"example.org"}, Rate: 5, Queued: func(items []outgoing.Item) {
			o.mu.Lock()
			defer o.mu.Unlock()
			for _, i := range items {
				o.queued = append(o.queued, string(i.State)+" "+i.From+" "+i.To+" "+i.MessageID)
			}
		},
	}}
}

func (o *outside) told() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.queued)
}

// TestSendOutside checks that sending a message to agents and to another domain is one operation. It must write a
// queue file for each recipient at the other domain, and these files must appear neither in the history nor in any
// inbox.
func TestSendOutside(t *testing.T) {
	t.Parallel()
	var o outside
	p := project(t, o.config(), "Ann", "Bob")
	d := maildir.Draft{To: []string{"Bob", "Cat@EXAMPLE.org"}, CC: []string{"Cat@example.org"}, BCC: []string{"dan@example.org"}, Body: "b", Key: "k"}
	sent, err := p.Box("Ann", format.Origin{}).Send(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"queued Ann@mail.example.net Cat@example.org " + sent.ID + "@mail.example.net", "queued Ann@mail.example.net dan@example.org " + sent.ID + "@mail.example.net",
	}
	if told := o.told(); !slices.Equal(told, want) {
		t.Errorf("notified about %q", told)
	}
	if again, err := p.Box("Ann", format.Origin{}).Send(t.Context(), d); err != nil || !again.Again || len(o.told()) != 2 {
		t.Errorf("the same again: %v %v, notices about %q", err, again, o.told())
	}
	open, err := p.Outgoing().Open()
	if err != nil || len(open) != 2 {
		t.Errorf("%v %v", err, open)
	}
	if dirs, _ := filepath.Glob(filepath.Join(p.Dir(), "agents", "*@*")); len(dirs) > 0 {
		t.Error(dirs)
	}
	if err := p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out := git(t, p, "show", "--name-only", "--format="); strings.Contains(out, "queue") || strings.Count(out, sent.ID) != 3 {
		t.Errorf("in the commit: %s", out)
	}
}

// TestGoneOutside checks that an undo, a deletion and an edit report the recipients at other domains that keep the
// original mail.
func TestGoneOutside(t *testing.T) {
	t.Parallel()
	var o outside
	p := project(t, o.config(), "Ann", "Bob")
	box := p.Box("Ann", format.Origin{Auth: "none"})
	send := func(states ...outgoing.State) (id string) {
		t.Helper()
		to := []string{"Bob", "cat@example.org", "dan@example.org"}
		sent, err := box.Send(t.Context(), maildir.Draft{To: to[:2], BCC: to[2 : 1+len(states)], Subject: "s", Body: "b"})
		if err != nil {
			t.Fatal(err)
		}
		for i, state := range states {
			item, err := p.Outgoing().Get(outgoing.ID(sent.ID, to[i+1]))
			if err != nil || item == nil {
				t.Fatalf("%v %v", item, err)
			}
			item.State = state
			if err := p.Outgoing().Save(item); err != nil {
				t.Fatal(err)
			}
		}
		return sent.ID
	}
	id := send(outgoing.Sent, outgoing.Deferred)
	m, err := p.Amendable(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	amended, err := box.Amend(t.Context(), maildir.Amendment{ID: id, Version: m.Version, Text: m.Text + "more"})
	if err != nil || !slices.Equal(amended.Outside, []string{"cat@example.org"}) {
		t.Errorf("an edit: %v %+v", err, amended)
	}
	if undone, err := box.Undo(t.Context(), maildir.Undoing{ID: id, Verb: "send"}); err == nil {
		t.Errorf("the send of an edited message is undone: %+v", undone)
	}
	gone, err := p.Box("Bob", format.Origin{}).Delete(t.Context(), id)
	if err != nil || !slices.Equal(gone.Outside, []string{"cat@example.org"}) {
		t.Errorf("a deletion: %v %+v", err, gone)
	}
	undone, err := box.Undo(t.Context(), maildir.Undoing{ID: send(outgoing.Sending, outgoing.Unknown)})
	if err != nil || !slices.Equal(undone.Outside, []string{"cat@example.org", "dan@example.org"}) {
		t.Errorf("an undo: %v %+v", err, undone)
	}
	undone, err = box.Undo(t.Context(), maildir.Undoing{ID: send(outgoing.Queued)})
	if err != nil || len(undone.Outside) > 0 {
		t.Errorf("an undo of mail that was not sent: %v %+v", err, undone)
	}
}

// TestOnlySendQueues checks that an outbox copy that a user writes by hand is treated as a message, but is not sent to
// other domains.
func TestOnlySendQueues(t *testing.T) {
	t.Parallel()
	var o outside
	p := project(t, o.config(), "Ann", "Bob")
	text := `---json
{"id": "x1", "from": "Ann", "to": ["Bob", "cat@example.org"], "created": "2025-10-23T15:22:14Z"}
---

text
`
	put(t, p, "agents/Ann/outbox/x1.md", text)
	put(t, p, "messages/2025/10/23/x1.md", text)
	until(t, "the message is there", func() bool { _, err := p.MessageHead(t.Context(), "x1"); return err == nil })
	if open, err := p.Outgoing().Open(); err != nil || len(open) > 0 || len(o.told()) > 0 {
		t.Errorf("%v %v %v", err, open, o.told())
	}
}

// TestSavedOutside checks that a file in an outbox is not sent to other domains, because it may come from a `git
// pull`. Its author must get a notice.
func TestSavedOutside(t *testing.T) {
	t.Parallel()
	var o outside
	p := project(t, o.config(), "Ann")
	put(t, p, "agents/Ann/outbox/hi.md", "---json\n{\"to\": [\"cat@example.org\"]}\n---\n\nHi.\n")
	until(t, "Postmaster reports why the file was not sent", func() bool { return len(inbox(t, p, "Ann").Messages) == 1 })
	if len(o.told()) > 0 {
		t.Error(o.told())
	}
}

// TestOutsideRate checks that the hourly limit on emails applies to each mailbox separately, and that each recipient
// counts as one email.
func TestOutsideRate(t *testing.T) {
	t.Parallel()
	var o outside
	var mu sync.Mutex
	now := time.Date(2026, 2, 3, 9, 0, 0, 0, time.UTC)
	cfg := o.config()
	cfg.Now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	p := project(t, cfg, "Ann", "Bob")
	send := func(from string, n int, key string) error {
		var to []string
		for i := range n {
			to = append(to, fmt.Sprintf("x%d@example.org", i))
		}
		_, err := p.Box(from, format.Origin{}).Send(t.Context(), maildir.Draft{To: to, Body: "b", Key: key})
		return err
	}
	if err := errors.Join(send("Ann", 3, "first"), send("Ann", 2, ""), send("Ann", 3, "first"), send("Bob", 5, "")); err != nil {
		t.Fatal(err)
	}
	if err := send("Ann", 1, ""); !errors.Is(err, maildir.ErrUnavailable) || !strings.Contains(err.Error(), "5 were already sent") {
		t.Errorf("the sixth: %v", err)
	}
	mu.Lock()
	now = now.Add(time.Hour)
	mu.Unlock()
	if err := send("Ann", 5, ""); err != nil {
		t.Errorf("an hour later: %v", err)
	}
	if len(o.told()) != 15 {
		t.Errorf("%d are queued", len(o.told()))
	}
}

// TestOutsideRateAgain checks that after a restart, the server counts the emails in the queue again. The count must
// include emails that have already been sent, but no emails that are more than an hour old.
func TestOutsideRateAgain(t *testing.T) {
	t.Parallel()
	var o outside
	now := time.Now()
	cfg := o.config()
	cfg.Root, cfg.Now = filepath.Join(t.TempDir(), "store"), func() time.Time { return now }
	send := func(p *maildir.Project, to ...string) error {
		_, err := p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: to, Body: "b"})
		return err
	}
	s := storetest.Open(t, cfg)
	p := projectIn(t, s.Store, "Ann")
	if err := send(p, "a@example.org", "b@example.org", "c@example.org"); err != nil {
		t.Fatal(err)
	}
	open, err := p.Outgoing().Open()
	if err != nil || len(open) != 3 {
		t.Fatal(err, open)
	}
	open[0].State = outgoing.Sent
	if err := p.Outgoing().Save(&open[0]); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	s = storetest.Open(t, cfg)
	p = projectIn(t, s.Store)
	if err := errors.Join(send(p, "d@example.org"), send(p, "e@example.org")); err != nil {
		t.Fatal(err)
	}
	if err := send(p, "f@example.org"); !errors.Is(err, maildir.ErrUnavailable) || !strings.Contains(err.Error(), "5 were already sent") {
		t.Errorf("the sixth: %v", err)
	}
	s.Stop()
	now = now.Add(time.Hour)
	if err := send(projectIn(t, storetest.Open(t, cfg).Store), "f@example.org"); err != nil {
		t.Errorf("an hour later: %v", err)
	}
}

// TestAutomatic checks that a program cannot answer automatic mail from another domain in any way, whereas a user
// can. A program must be able to answer other mail, and to write to other recipients.
func TestAutomatic(t *testing.T) {
	t.Parallel()
	var o outside
	p := project(t, o.config(), "Bob")
	mail := func(automatic bool, from string) string {
		return receive(t, p, email(func(in *maildir.Incoming) {
			in.From, in.Automatic, in.Subject = from, automatic, from
			in.MessageID = fmt.Sprint(automatic, "@x.example.org")
		}))
	}
	program, person := format.Origin{Auth: "uid:1", Door: format.DoorStdio}, format.Origin{Auth: "uid:1", Door: format.DoorPage}
	automatic := mail(true, "ann@example.org")
	answer := func(id string, by format.Origin) error {
		_, err := p.Box("Bob", by).Reply(t.Context(), id, maildir.Draft{Body: "b"})
		return err
	}
	write := func(inReplyTo, to string) error {
		_, err := p.Box("Bob", program).Send(t.Context(), maildir.Draft{To: []string{to}, Body: "b", InReplyTo: inReplyTo})
		return err
	}
	for _, err := range []error{
		answer(automatic, program), write(automatic, "ann@example.org"), write("true@x.example.org", "ann@example.org"),
	} {
		if !errors.Is(err, maildir.ErrInvalid) || !strings.Contains(err.Error(), "programs must not answer such mail") {
			t.Error(err)
		}
	}
	other := mail(false, "ann@example.org")
	if err := errors.Join(answer(automatic, person), answer(other, program), write(automatic, "boss@example.org")); err != nil {
		t.Error(err)
	}
	err := answer(mail(false, maildir.UnknownSender), person)
	if !errors.Is(err, maildir.ErrInvalid) || !strings.Contains(err.Error(), "an unknown sender") {
		t.Error(err)
	}
}

// TestOutsideNames checks that an agent cannot send mail to other domains if its name cannot be part of an email
// address.
func TestOutsideNames(t *testing.T) {
	t.Parallel()
	var o outside
	p := project(t, o.config(), "a..b")
	_, err := p.Box("a..b", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{"cat@example.org"}, Body: "b"})
	if !errors.Is(err, maildir.ErrInvalid) || !strings.Contains(err.Error(), "dots before the @ must be single") {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Join(p.Dir(), format.MessagesDir)); len(left) > 0 {
		t.Error(left)
	}
}
