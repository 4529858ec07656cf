package maildir_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// TestReceipts checks that the sender sees the receipts of all recipients. All other agents must see only the
// receipts of the recipients in to and cc (Invariant I7).
func TestReceipts(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob", "Cat", "Dan")
	m := send(t, p, "Ann", maildir.Draft{
		To:   []string{"Bob"},
		CC:   []string{"Cat"},
		BCC:  []string{"Dan"},
		Body: "text",
	})
	ack, err := p.Box("Cat", format.Origin{}).Acknowledge(t.Context(), m.ID)
	if err != nil {
		t.Fatal(err)
	}
	receipt := func(name, kind string, marks index.Marks) index.Receipt {
		return index.Receipt{
			Agent:       name,
			Kind:        kind,
			Delivered:   true,
			DeliveredAt: format.At(m.Created),
			Marks:       marks,
		}
	}
	open := []index.Receipt{receipt("Bob", "to", index.Marks{}), receipt("Cat", "cc", ack.Marks)}
	row, err := p.Message(t.Context(), m.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(open, row.Receipts); diff != "" || row.BCC != nil {
		t.Errorf("everyone sees %v as bcc, and receipts (-want +got)\n%s", row.BCC, diff)
	}
	for _, name := range []string{"Ann", "Bob"} {
		page, err := p.Box(name, format.Origin{}).Inbox(t.Context(), index.InboxQuery{ID: m.ID}, false, maildir.Waiting{})
		if err != nil {
			t.Fatal(err)
		}
		want, d := []index.Receipt(nil), page.Messages[0]
		if name == "Ann" {
			want = append(open, receipt("Dan", "bcc", index.Marks{}))
		}
		if diff := cmp.Diff(want, d.Receipts); diff != "" || d.Body != "text" {
			t.Errorf("%s is shown %q, and receipts (-want +got)\n%s", name, d.Body, diff)
		}
	}
	dan := p.Box("Dan", format.Origin{})
	for _, do := range []func() error{
		func() error { _, err := dan.SetRead(t.Context(), m.ID, true); return err },
		func() error { _, err := dan.Undo(t.Context(), maildir.Undoing{ID: m.ID}); return err },
		func() error { _, err := dan.Redo(t.Context(), maildir.Undoing{ID: m.ID}); return err },
	} {
		if err := errors.Join(do(), p.FlushHistory(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string][]index.Receipt{"Cat": open[1:], "Dan": nil} {
		info, err := p.Agents.Whois(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var got []index.Receipt
		for i := range info.Mail {
			got = append(got, p.ReceiptOf(&info.Mail[i]))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("whois %s (-want +got)\n%s", name, diff)
		}
		for _, c := range info.Commits {
			if strings.Contains(c.Subject, "msg_") {
				t.Errorf("whois %s reveals a message that may be a blind copy: %s", name, c.Subject)
			}
		}
	}
}

// TestAwaiting checks that a message waiting for an acknowledgment is listed both for the agent that must
// acknowledge it and for the sender.
func TestAwaiting(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob", "Cat")
	ask := func(from string, to ...string) string {
		return send(t, p, from, maildir.Draft{
			To:          to,
			Body:        "text",
			AckRequired: true,
		}).ID
	}
	list := func(agent string) (got []string) {
		page, err := p.Box(agent, format.Origin{}).Inbox(t.Context(), index.InboxQuery{AwaitingAck: true}, false, maildir.Waiting{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Messages {
			got = append(got, d.Kind+" "+d.ID)
		}
		return got
	}
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Body: "asks for nothing"})
	both, own := ask("Ann", "Bob", "Cat"), ask("Bob", "Bob")
	expect := func(agent string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, list(agent)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", agent, diff)
		}
	}
	expect("Ann", "sent "+both)
	expect("Bob", "to "+own, "to "+both)
	for _, name := range []string{"Bob", "Cat"} {
		expect("Ann", "sent "+both)
		if _, err := p.Box(name, format.Origin{}).Acknowledge(t.Context(), both); err != nil {
			t.Fatal(err)
		}
	}
	expect("Ann")
	expect("Bob", "to "+own)
	expect("Cat")
}

// TestThreadInInbox checks that an agent can read a whole thread, page by page, including messages that it sent and
// messages between other agents.
func TestThreadInInbox(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob", "Cat")
	for _, way := range [][2]string{{"Ann", "Bob"}, {"Bob", "Ann"}, {"Bob", "Cat"}} {
		send(t, p, way[0], maildir.Draft{
			To:       []string{way[1]},
			Body:     way[0] + " to " + way[1],
			ThreadID: "T-1",
		})
	}
	q := index.InboxQuery{
		Agent:  "Ann",
		Thread: "T-1",
		Bodies: true,
		Limit:  2,
	}
	var got []string
	for {
		page, err := p.Box(q.Agent, format.Origin{}).Inbox(t.Context(), q, true, maildir.Waiting{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Messages {
			got = append(got, d.Kind+": "+d.Body)
		}
		if q.Before = page.Next; page.Next == 0 {
			break
		}
	}
	if diff := cmp.Diff([]string{"sent: Ann to Bob", "to: Bob to Ann", "thread: Bob to Cat"}, got); diff != "" {
		t.Error(diff)
	}
	if n := inbox(t, p, "Ann").Unread; n != 0 {
		t.Errorf("%d are unread after all of them were marked read", n)
	}
}

// TestAwaitReply checks that the waiting caller gets only a reply to the given message. The reply must be complete and
// must stay unread.
func TestAwaitReply(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	asked := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Body: "question"})
	waits := make(chan struct{})
	type answer struct {
		d   *index.Delivery
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		d, err := p.Box(asked.From, format.Origin{}).AwaitReply(t.Context(), asked, maildir.Waiting{
			For:   maildir.MaxWait,
			Admit: func() error { close(waits); return nil },
		}, nil)
		answered <- answer{d, err}
	}()
	<-waits
	send(t, p, "Bob", maildir.Draft{To: []string{"Ann"}, Body: "something else"})
	reply, err := p.Box("Bob", format.Origin{}).Reply(t.Context(), asked.ID, maildir.Draft{Body: "answer"})
	if err != nil {
		t.Fatal(err)
	}
	if got := <-answered; got.err != nil || got.d == nil || got.d.ID != reply.ID || got.d.Body != "answer" || got.d.Read {
		t.Errorf("got %+v, %v", got.d, got.err)
	}
	if d, err := p.Box(reply.From, format.Origin{}).AwaitReply(t.Context(), reply, maildir.Waiting{For: 1}, nil); d != nil || err != nil {
		t.Errorf("if no reply comes: %+v, %v", d, err)
	}
}
