package maildir_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// TestUnwokenNever checks an agent that never had a session. The agent must be listed after it has been inactive, with
// unread mail, for ten minutes. A user's agent, an agent in a tmux window, a mailbox and an agent that polls must not
// be listed.
func TestUnwokenNever(t *testing.T) {
	t.Parallel()
	var jump atomic.Int64
	p := project(t, storetest.Config{Now: func() time.Time { return time.Now().Add(time.Duration(jump.Load())) }}, "Ann", "Cy")
	for name, program := range map[string]string{"Bob": "claude-code", "Poller": "postal", "Mailbox": ""} {
		if err := p.Agents.EnsureAgent(t.Context(), name, maildir.Registration{Program: program}); err != nil {
			t.Fatal(err)
		}
	}
	pat, _, err := p.Agents.Person(t.Context(), "pat")
	if err != nil {
		t.Fatal(err)
	}
	p.Sessions.SetSeat("Cy", maildir.Pane{Tmux: "/tmp/tmux,1,0", Pane: "%1"})
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob", "Cy", "Mailbox", "Poller", pat}, Subject: "s", Body: "b"})
	named := func() (names []string) {
		all, err := p.Sessions.Unwoken(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range all {
			names = append(names, u.String())
		}
		return names
	}
	if all := named(); len(all) > 0 {
		t.Errorf("at once: %s", all)
	}
	jump.Store(int64(16 * time.Minute))
	want := "Bob has had unread mail for 16m and cannot be woken: it never had a session"
	if all := named(); len(all) != 1 || !strings.HasPrefix(all[0], want) {
		t.Errorf("after 16 minutes: %s, want %s", all, want)
	}
	if _, err := p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, false, maildir.Waiting{}); err != nil {
		t.Fatal(err)
	}
	if all := named(); len(all) > 0 {
		t.Errorf("after Bob was active: %s", all)
	}
}
