package maildir_test

import (
	"testing"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// awaited starts call in a goroutine and returns when call is waiting. The returned function waits for call's result.
func awaited[T any](t *testing.T, call func(w maildir.Waiting) (T, error)) (result func() T) {
	t.Helper()
	waits, done := make(chan struct{}), make(chan T, 1)
	go func() {
		got, err := call(maildir.Waiting{For: maildir.MaxWait, Admit: func() error { close(waits); return nil }})
		if err != nil {
			t.Error(err)
		}
		done <- got
	}()
	<-waits
	return func() T { return <-done }
}

// TestUntrustedEndsNoWait checks that an agent waiting for mail keeps waiting when untrusted mail from another domain
// arrives. That mail must be unverified, and must be on the page when other mail ends the wait.
func TestUntrustedEndsNoWait(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{NoWatcher: true})
	p := projectIn(t, s.Store, "Ann", "Bob")
	page := awaited(t, func(w maildir.Waiting) (*maildir.InboxPage, error) {
		return p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, false, w)
	})
	receive(t, p, email(func(in *maildir.Incoming) { in.Auth = "none" }))
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Body: "b"})
	got := page()
	if len(got.Messages) != 2 || got.Messages[0].From != "Ann" {
		t.Fatalf("the wait ended with %+v", got.Messages)
	}
	if _, ok := s.VerifiedIn(&got.Messages[1].MessageRow); ok {
		t.Error("mail without a voucher is verified")
	}
}

// TestReplyFromOutside checks that a reply is accepted if it comes from the address that the question was sent to, and
// that address's domain vouches for the reply. A reply from any other address must not be accepted.
func TestReplyFromOutside(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true, Outside: maildir.Outside{Allow: []string{"*"}}}, "Bob")
	asked := send(t, p, "Bob", maildir.Draft{To: []string{"ann@example.org"}, Body: "question"})
	reply := awaited(t, func(w maildir.Waiting) (*index.Delivery, error) {
		return p.Box("Bob", format.Origin{}).AwaitReply(t.Context(), asked, w, nil)
	})
	answer := func(from, auth string) string {
		return receive(t, p, email(func(in *maildir.Incoming) {
			in.From, in.Auth, in.Body, in.InReplyTo = from, auth, from+auth, asked.ID+"@mailtree.local"
		}))
	}
	answer("ann@example.org", "none")
	answer("eve@example.org", "dmarc:example.org")
	id := answer("ann@example.org", "dmarc:example.org")
	if got := reply(); got == nil || got.ID != id {
		t.Errorf("%+v", got)
	}
}
