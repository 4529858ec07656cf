package maildir_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
)

// TestReceipts: the sender learns how far each recipient is, everybody else the same of those who
// are named openly (Invariant I7).
func TestReceipts(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob", "Cat", "Dan")
	m := send(t, p, maildir.Draft{
		From: "Ann",
		To:   []string{"Bob"},
		CC:   []string{"Cat"},
		BCC:  []string{"Dan"},
		Body: "text",
	})
	ack, err := p.Acknowledge(t.Context(), "Cat", m.ID)
	if err != nil {
		t.Fatal(err)
	}
	receipt := func(name, kind string, marks maildir.Marks) maildir.Receipt {
		return maildir.Receipt{
			Agent:       name,
			Kind:        kind,
			Delivered:   true,
			DeliveredAt: m.Created,
			Marks:       marks,
		}
	}
	open := []maildir.Receipt{receipt("Bob", "to", maildir.Marks{}), receipt("Cat", "cc", ack.Marks)}
	row, err := p.Message(t.Context(), m.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(open, row.Receipts); diff != "" || row.BCC != nil {
		t.Errorf("everybody is shown %v as bcc, and receipts (-want +got)\n%s", row.BCC, diff)
	}
	for _, name := range []string{"Ann", "Bob"} {
		page, err := p.Inbox(t.Context(), maildir.InboxQuery{Agent: name, ID: m.ID}, false, 0)
		if err != nil {
			t.Fatal(err)
		}
		want, d := []maildir.Receipt(nil), page.Messages[0]
		if name == "Ann" {
			want = append(open, receipt("Dan", "bcc", maildir.Marks{}))
		}
		if diff := cmp.Diff(want, d.Receipts); diff != "" || d.Body != "text" {
			t.Errorf("%s is shown %q, and receipts (-want +got)\n%s", name, d.Body, diff)
		}
	}
	for name, want := range map[string][]maildir.Receipt{"Cat": open[1:], "Dan": nil} {
		info, err := p.Whois(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var got []maildir.Receipt
		for i := range info.Mail {
			got = append(got, p.ReceiptOf(&info.Mail[i]))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("whois %s (-want +got)\n%s", name, diff)
		}
	}
}
