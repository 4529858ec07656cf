package maildir_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// TestOutdone checks that if there are two exclusive claims on a path, the holder of the later claim gets one notice.
// This can happen after a clock has jumped forward and back.
func TestOutdone(t *testing.T) {
	t.Parallel()
	var jump atomic.Int64
	p := project(t, storetest.Config{Now: func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }}, "Ann", "Bob")
	grant := func(agent string) {
		res, err := p.Box(agent, format.Origin{}).Claim(t.Context(), claim.Request{Patterns: []string{"app/api"}, TTL: time.Hour})
		if err != nil || len(res.Granted) != 1 {
			t.Fatalf("%s: %+v, %v", agent, res, err)
		}
	}
	grant("Ann")
	jump.Store(int64(48 * time.Hour))
	grant("Bob")
	jump.Store(0)
	told := func() []index.Delivery {
		if err := p.Rescan(t.Context()); err != nil {
			t.Fatal(err)
		}
		const leaveUnread = false
		page, err := p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{Limit: 10}, leaveUnread, maildir.Waiting{})
		if err != nil {
			t.Fatal(err)
		}
		return page.Messages
	}
	await(t, func() bool { return len(told()) == 1 })
	if m := told()[0]; m.From != format.Postmaster || !strings.Contains(m.Subject, "app/api") {
		t.Errorf("%+v", m)
	}
	if n := len(told()); n != 1 {
		t.Errorf("notified %d times", n)
	}
}
