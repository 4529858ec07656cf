package maildir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// TestArchive checks that an archived message is marked as read and disappears from the inbox list. It must still
// appear in its thread, in search results, and in lists that include archived messages. Marking it as unread must
// bring it back into the inbox list.
func TestArchive(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "zebra", Body: "b", AckRequired: true, ThreadID: "T"})
	d, err := p.Box("Bob", format.Origin{}).Archive(t.Context(), m.ID)
	if err != nil || !d.Archived || !d.Read || d.Acked {
		t.Fatalf("archived: %+v, %v", d, err)
	}
	if page := inbox(t, p, "Bob"); len(page.Messages) != 0 || page.Total != 1 || page.Archived != 1 || page.Unread != 0 {
		t.Errorf("inbox: %+v", page)
	}
	if got, err := p.Box("Bob", format.Origin{}).Pop(t.Context()); got != nil || err != nil {
		t.Errorf("popped %+v, %v", got, err)
	}
	for what, q := range map[string]index.InboxQuery{
		"asked for":   {Agent: "Bob", Archived: true},
		"by its id":   {Agent: "Bob", ID: m.ID},
		"its thread":  {Agent: "Bob", Thread: "T"},
		"to be acked": {Agent: "Bob", AwaitingAck: true},
	} {
		page, err := p.Box(q.Agent, format.Origin{}).Inbox(t.Context(), q, false, maildir.Waiting{})
		if err != nil || len(page.Messages) != 1 || !page.Messages[0].Archived {
			t.Errorf("%s: %+v, %v", what, page, err)
		}
	}
	if got := find(t, p, "zebra"); len(got) != 1 {
		t.Errorf("found %+v", got)
	}
	if d, err = p.Box("Bob", format.Origin{}).Acknowledge(t.Context(), m.ID); err != nil || !d.Acked || !d.Archived {
		t.Errorf("acknowledged: %+v, %v", d, err)
	}
	if d, err = p.Box("Bob", format.Origin{}).Archive(t.Context(), m.ID); err != nil || !d.Archived {
		t.Errorf("archived again: %+v, %v", d, err)
	}
	other := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "other", Body: "b"})
	if _, err := p.Box("Bob", format.Origin{}).Archive(t.Context(), other.ID); err != nil {
		t.Fatal(err)
	}
	const read = true
	if d, err = p.Box("Bob", format.Origin{}).SetRead(t.Context(), other.ID, !read); err != nil || d.Read || d.Archived {
		t.Errorf("unread: %+v, %v", d, err)
	}
	if page := inbox(t, p, "Bob"); len(page.Messages) != 1 || page.Unread != 1 || page.Archived != 1 {
		t.Errorf("inbox with one unread: %+v", page)
	}
	if _, err := p.Box("Ann", format.Origin{}).Archive(t.Context(), m.ID); !errors.Is(err, maildir.ErrInvalid) {
		t.Errorf("archived from another agent's inbox: %v", err)
	}
}

// TestArchiveByHand checks that a user can archive a message by creating a .archived file, even an empty one.
func TestArchiveByHand(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{}, "Ann", "Bob")
	m := send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"})
	d, err := p.Box("Bob", format.Origin{}).Delivery(t.Context(), m.ID)
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(p.Dir(), format.ArchivedMark(d.CopyPath))
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Rescan(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d, err = p.Box("Bob", format.Origin{}).Delivery(t.Context(), m.ID); err != nil || !d.Archived || !d.Read {
		t.Errorf("%+v, %v", d, err)
	}
}

func find(t testing.TB, p *maildir.Project, words string) []index.Hit {
	t.Helper()
	found, err := p.Search(t.Context(), maildir.SearchRequest{Text: words})
	if err != nil {
		t.Fatal(err)
	}
	return found.Hits
}
