package maildir_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
)

// markedAs returns the marks of an agent's copy.
func markedAs(t testing.TB, p *maildir.Project, agent, id string) index.Marks {
	t.Helper()
	d, err := p.Box(agent, format.Origin{}).Delivery(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return d.Marks
}

func reply(t testing.TB, p *maildir.Project, agent, id string) *maildir.Sent {
	t.Helper()
	sent, err := p.Box(agent, format.Origin{}).Reply(t.Context(), id, maildir.Draft{Body: "Yes."})
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

// verbsOn returns the verbs of an agent's operations on a message, oldest first.
func verbsOn(t testing.TB, p *maildir.Project, agent, id string) (verbs []string) {
	t.Helper()
	err := p.Log(t.Context(), maildir.LogQuery{Of: id}, func(e *history.Entry) error {
		if e.Who == agent {
			verbs = append(verbs, e.Verb)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(verbs)
	return verbs
}

// TestReplySettles checks that a recipient's reply marks the answered message as read and, if the message requests an
// acknowledgment, as acknowledged. The marks must have the time of the reply. Undoing the reply must remove only these
// marks.
func TestReplySettles(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{}).Store
	p := projectIn(t, s, "Ann", "Bob", "Cy")
	asks := send(t, p, "Ann", maildir.Draft{To: []string{"Bob", "Cy"}, Subject: "Plan", Body: "b", AckRequired: true}).ID
	tells := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "FYI", Body: "b"}).ID

	happened := make(chan maildir.Event, 16)
	after, err := s.LastChange(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go s.Watch(t.Context(), p, after, func(h *maildir.Event) error {
		happened <- *h
		return nil
	})
	first := reply(t, p, "Bob", asks)
	for told := ""; told != "ack Bob "+asks; {
		h := <-happened
		told = h.What + " " + h.Agent + " " + h.ID
	}
	if m := markedAs(t, p, "Bob", asks); !first.Acked || !m.Read || !m.Acked || !m.ReadAt.Equal(first.Created) || !m.AckedAt.Equal(first.Created) {
		t.Errorf("%v, replied at %s: %+v", first.Acked, first.Created, m)
	}
	if _, err := p.Box("Ann", format.Origin{}).SetRead(t.Context(), first.ID, true); err != nil {
		t.Fatal(err)
	}
	if w := waitsOf(t, p, "Ann"); len(w.Owed) != 1 || !slices.Equal(w.Owed[0].People, []string{"Cy"}) {
		t.Errorf("Ann is waiting for %+v", w.Owed)
	}
	told := reply(t, p, "Bob", tells)
	if m := markedAs(t, p, "Bob", tells); told.Acked || !m.Read || m.Acked {
		t.Errorf("%v: %+v", told.Acked, m)
	}
	undo(t, p, "Bob", "")
	if m := markedAs(t, p, "Bob", tells); m.Read {
		t.Errorf("undone: %+v", m)
	}
	undo(t, p, "Bob", first.ID)
	if m := markedAs(t, p, "Bob", asks); m.Read || m.Acked {
		t.Errorf("undone: %+v", m)
	}
	if got := verbsOn(t, p, "Bob", asks); !slices.Equal(got, []string{"reply", "undo-reply"}) {
		t.Errorf("the history has %q", got)
	}

	if _, err := p.Box("Bob", format.Origin{}).Redo(t.Context(), maildir.Undoing{ID: first.ID}); err != nil {
		t.Fatal(err)
	}
	if m := markedAs(t, p, "Bob", asks); !m.Acked || !m.AckedAt.Equal(first.Created) {
		t.Errorf("redone: %+v", m)
	}
	undo(t, p, "Bob", first.ID)
	if _, err := p.Box("Bob", format.Origin{}).SetRead(t.Context(), asks, true); err != nil {
		t.Fatal(err)
	}
	before := markedAs(t, p, "Bob", asks)
	again := reply(t, p, "Bob", asks)
	if m := markedAs(t, p, "Bob", asks); !m.Acked || m.ReadAt != before.ReadAt {
		t.Errorf("%+v, and before %+v", m, before)
	}
	reply(t, p, "Bob", asks)
	if u := undo(t, p, "Bob", ""); u.Operation != "reply" || !markedAs(t, p, "Bob", asks).Acked {
		t.Errorf("after a second reply was undone: %+v", u)
	}
	third := reply(t, p, "Bob", asks)
	undo(t, p, "Bob", again.ID)
	if m := markedAs(t, p, "Bob", asks); !m.AckedAt.Equal(third.Created) {
		t.Errorf("after one of two replies was undone: %+v", m)
	}
	undo(t, p, "Bob", third.ID)
	if m := markedAs(t, p, "Bob", asks); m != before {
		t.Errorf("after the undo: %+v, before the reply: %+v", m, before)
	}
}

// TestReplySettlesNothing checks that a reply sets no mark if a sender answers its own message, or if an agent
// answers a message that it did not receive.
func TestReplySettlesNothing(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob", "Cy")
	id := send(t, p, "Ann", maildir.Draft{To: []string{"Ann", "Bob"}, Subject: "Plan", Body: "b", AckRequired: true}).ID
	for _, agent := range []string{"Ann", "Cy"} {
		if sent := reply(t, p, agent, id); sent.Acked {
			t.Errorf("%s has acknowledged", agent)
		}
	}
	for _, agent := range []string{"Ann", "Bob"} {
		if m := markedAs(t, p, agent, id); m.Read || m.Acked {
			t.Errorf("%s: %+v", agent, m)
		}
	}
}

// TestReplyCannotSettle checks that a reply is sent even if something else exists at the path of the mark. In that
// case, the result must not report an acknowledgment, and it must be possible to undo the reply.
func TestReplyCannotSettle(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	id := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "Plan", Body: "b", AckRequired: true}).ID
	d, err := p.Box("Bob", format.Origin{}).Delivery(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(p.Dir(), format.AckMark(d.CopyPath)), 0o700); err != nil {
		t.Fatal(err)
	}
	if sent := reply(t, p, "Bob", id); sent.Acked {
		t.Error("the reply reports an acknowledgement")
	}
	undo(t, p, "Bob", "")
	if m := markedAs(t, p, "Bob", id); m.Read || m.Acked {
		t.Errorf("undone: %+v", m)
	}
}

// TestSavedReplySettles checks that a reply saved in an outbox also marks the message that it answers.
func TestSavedReplySettles(t *testing.T) {
	a := newAuthor(t, storetest.Config{})
	id := send(t, a.p, "Bob", maildir.Draft{To: []string{"Ann"}, Subject: "Plan", Body: "b", AckRequired: true}).ID
	a.save("agents/Ann/outbox/yes.md", "---json\n{\"in_reply_to\": \""+id+"\"}\n---\n\nYes.\n")
	until(t, "Bob has the answer", func() bool { return len(a.inbox("Bob", "Ann")) == 1 })
	if m := markedAs(t, a.p, "Ann", id); !m.Read || !m.Acked {
		t.Errorf("%+v", m)
	}
}
