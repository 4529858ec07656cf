package gateway

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/gateway/message"
	"mailtree/gateway/out"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/outgoing"
)

// scene is a store with the agents Ann and Bob, and the store's queue, which is not started.
type scene struct {
	*items
	project *maildir.Project
}

func newScene(t *testing.T) *scene {
	t.Helper()
	o := NewOutgoing(&Config{}, "mail.example.net", slog.New(slog.DiscardHandler))
	s := storetest.Open(t, storetest.Config{
		Domains: []string{"mail.example.net"},
		Outside: maildir.Outside{Allow: []string{"*"}, Queued: o.Queued},
	})
	o.Use(s.Store)
	p, err := s.EnsureProject(t.Context(), "/abs/path/shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Ann", "Bob"} {
		if err := p.Agents.EnsureAgent(t.Context(), name, maildir.Registration{}); err != nil {
			t.Fatal(err)
		}
	}
	return &scene{o.items, p}
}

// send sends a message from Ann and returns the message's first item in the queue.
func (s *scene) send(t *testing.T, d maildir.Draft) outgoing.Item {
	t.Helper()
	sent, err := s.project.Box("Ann", format.Origin{}).Send(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Find(t.Context(), sent.ID+"@mail.example.net")
	if err != nil || len(all) == 0 {
		t.Fatal(err, all)
	}
	return all[0]
}

func (s *scene) email(t *testing.T, i outgoing.Item) *message.Message {
	t.Helper()
	raw, err := s.Raw(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	m, err := message.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestEmail checks that a message is converted to an email that does not reveal bcc recipients.
func TestEmail(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	first := s.send(t, maildir.Draft{To: []string{"Bob", "cat@example.org"}, BCC: []string{"dan@example.org"}, Subject: "Plan", Body: "**b**"})
	m := s.email(t, first)
	if strings.Join(m.To, " ") != "Bob@mail.example.net cat@example.org" || m.From != "Ann@mail.example.net" || m.MessageID != first.MessageID ||
		!strings.Contains(m.HTML, "<strong>b</strong>") || m.AutoSubmitted != "auto-generated" {
		t.Errorf("%+v", m)
	}
	answer := s.send(t, maildir.Draft{
		To: []string{"cat@example.org"}, Body: "**b**", InReplyTo: first.Message, Variants: maildir.Variants{TextOnly: true},
	})
	if m := s.email(t, answer); m.InReplyTo != first.MessageID || m.HTML != "" || m.AutoSubmitted != "auto-replied" {
		t.Errorf("%+v", m)
	}
	own := s.send(t, maildir.Draft{To: []string{"cat@example.org"}, Body: "b", Variants: maildir.Variants{HTML: "<p style='x'>own</p>"}})
	if m := s.email(t, own); m.HTML != "<p style='x'>own</p>" || len(m.Attachments) > 0 {
		t.Errorf("%+v", m)
	}
}

// TestTakenBack checks that a message is not sent if it was undone, and is refused if its copy in the outbox was
// edited.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	undone := s.send(t, maildir.Draft{To: []string{"cat@example.org"}, Body: "b"})
	if _, err := s.project.Box("Ann", format.Origin{}).Undo(t.Context(), maildir.Undoing{ID: undone.Message}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Raw(t.Context(), undone); !errors.Is(err, out.ErrTakenBack) {
		t.Errorf("undone: %v", err)
	}
	changed := s.send(t, maildir.Draft{To: []string{"cat@example.org"}, Body: "the text"})
	files, err := filepath.Glob(filepath.Join(s.project.Dir(), "agents/Ann/outbox/*/*/*", changed.Message+".md"))
	if err != nil || len(files) != 1 {
		t.Fatal(err, files)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], []byte(strings.Replace(string(data), "the text", "a forgery", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var refusal *out.Refusal
	if _, err := s.Raw(t.Context(), changed); !errors.As(err, &refusal) {
		t.Errorf("changed: %v", err)
	}
}

// TestReport checks that Postmaster reports the same items to the sender only once, in the message's thread, without
// revealing bcc recipients.
func TestReport(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	i := s.send(t, maildir.Draft{To: []string{"cat@example.org"}, BCC: []string{"dan@example.org"}, Body: "b"})
	all, err := s.Find(t.Context(), i.MessageID)
	if err != nil || len(all) != 2 {
		t.Fatal(err, all)
	}
	for n := range all {
		all[n].State, all[n].Reply = outgoing.Failed, "550 5.1.1 no"
	}
	for range 2 {
		if err := s.Report(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	last := slices.MaxFunc(all, func(a, b outgoing.Item) int { return strings.Compare(a.ID, b.ID) })
	if err := s.Report(t.Context(), []outgoing.Item{last}); err != nil { // as if the server had been killed between the two writes
		t.Fatal(err)
	}
	all[0].Queued = all[0].Queued.Add(time.Hour) // as if the user had sent it again
	if err := s.Report(t.Context(), all[:1]); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(s.project.Dir(), "agents/Ann/inbox/*/*/*/*.md"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v %q", err, files)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil || strings.Contains(string(data), "dan@") || !strings.Contains(string(data), `"in_reply_to": "`+i.Message+`"`) ||
			!strings.Contains(string(data), "cat@example.org: failed. 550 5.1.1 no") {
			t.Errorf("%v %s", err, data)
		}
	}
}

// TestReportTwice checks that there is a second report if a recipient fails later. A report must list the recipients
// that the message may have reached separately from those that it did not reach.
func TestReportTwice(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	i := s.send(t, maildir.Draft{To: []string{"cat@example.org", "dan@example.org", "eve@example.org"}, BCC: []string{"fay@example.org"}, Body: "b"})
	all, err := s.Find(t.Context(), i.MessageID)
	if err != nil || len(all) != 4 {
		t.Fatal(err, all)
	}
	for n, state := range []outgoing.State{outgoing.Failed, outgoing.Unknown, outgoing.Failed, outgoing.Unknown} {
		all[n].State, all[n].Reply = state, "so"
	}
	first := []outgoing.Item{all[0], all[1], all[3]}
	for _, told := range [][]outgoing.Item{first, all[2:3]} {
		if err := s.Report(t.Context(), told); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(s.project.Dir(), "agents/Ann/inbox/*/*/*/*.md"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%v %q", err, files)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	not, perhaps, _ := strings.Cut(string(data), "The server does not know whether")
	if !strings.Contains(not, "cat@example.org: failed") || strings.Contains(perhaps, "cat@") || strings.Contains(not, "dan@") ||
		!strings.Contains(perhaps, "dan@example.org: unknown. so ("+all[1].ID+" in the queue") ||
		!strings.Contains(perhaps, "a recipient in bcc") || strings.Contains(string(data), all[3].ID) {
		t.Errorf("%s", data)
	}
}

// TestBouncedLater checks that a delivery status report marks sent items as failed and quotes the remote server.
func TestBouncedLater(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	i := s.send(t, maildir.Draft{To: []string{"cat@example.org", "dan@example.org"}, Body: "b"})
	other := i
	other.To, other.ID = "dan@example.org", outgoing.ID(i.Message, "dan@example.org")
	for _, sent := range []outgoing.Item{i, other} {
		sent.State = outgoing.Sent
		if err := s.Save(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
	}
	q := out.NewQueue(s.items, nil, time.Now, slog.New(slog.DiscardHandler))
	report := &message.Bounce{MessageID: i.MessageID, Recipients: []message.Recipient{
		{Address: "CAT@example.org", Action: "failed", Status: "5.1.1", Diagnostic: "no such user"},
	}}
	if err := q.Bounce(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), i.ID); err != nil || got.State != outgoing.Failed || got.Reply != "5.1.1 no such user" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := s.Get(t.Context(), other.ID); err != nil || got.State != outgoing.Sent {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSaveGone checks that an item cannot be saved if its project no longer exists. The queue then does not send the
// message, because it could not save the result.
func TestSaveGone(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	i := s.send(t, maildir.Draft{To: []string{"cat@example.org"}, Body: "b"})
	i.Project, i.State = "gone-12345678", outgoing.Sending
	if err := s.Save(t.Context(), i); !errors.Is(err, maildir.ErrNotFound) {
		t.Errorf("the end of a message would be sent: %v", err)
	}
}
