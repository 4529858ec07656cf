package mail

import (
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/mcp/tool"
)

// TestStopWhileMarked checks that a waiting call still returns its messages if the server stops while the call is
// marking them as read.
func TestStopWhileMarked(t *testing.T) {
	t.Parallel()
	stopping, marked, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	armed := make(chan struct{}, 1)
	s := storetest.Open(t, storetest.Config{NoWatcher: true, Step: func(name string) {
		if name != "answer" {
			return
		}
		select {
		case <-armed:
			close(marked)
			<-goOn
		default:
		}
	}})
	p, err := s.EnsureProject(t.Context(), "/abs/p")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Agents.EnsureAgent(t.Context(), "Blue", maildir.Registration{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Box("Blue", format.Origin{}).Send(t.Context(), maildir.Draft{
		To:      []string{"Blue"},
		Subject: "s",
		Body:    "b",
	}); err != nil {
		t.Fatal(err)
	}
	check := New(tool.Config{Store: s.Store, Stopping: stopping}).checkMyMessages()
	type answer struct {
		page any
		err  error
	}
	answered := make(chan answer, 1)
	armed <- struct{}{}
	go func() {
		arguments := `{"project_key": "/abs/p", "agent_name": "Blue", "unread_only": true, "mark_read": true, "wait_seconds": 50}`
		page, err := check.Run(t.Context(), []byte(arguments))
		answered <- answer{page, err}
	}()
	<-marked
	close(stopping)
	defer func() {
		if got := <-answered; got.err != nil || len(got.page.(Inbox).Messages) != 1 {
			t.Errorf("%+v", got)
		}
	}()
	select {
	case got := <-answered: // returned early, so the response lacks the messages that are being marked
		answered <- got
	case <-time.After(100 * time.Millisecond):
	}
	close(goOn)
}

// TestPeek checks that an agent does not appear active when another agent reads its inbox, or when its inbox is read as
// a resource.
func TestPeek(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{NoWatcher: true})
	p, err := s.EnsureProject(t.Context(), "/abs/p")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Agents.EnsureAgent(t.Context(), "Blue", maildir.Registration{}); err != nil {
		t.Fatal(err)
	}
	ts := New(tool.Config{Store: s.Store})
	check := ts.checkMyMessages()
	for _, tt := range []struct {
		as     string
		active bool
	}{{"", true}, {"Blue", true}, {"Green", false}} {
		before, err := p.Agents.Whois(t.Context(), "Blue")
		if err != nil {
			t.Fatal(err)
		}
		ctx := tool.WithCaller(t.Context(), tool.Caller{Agent: tt.as})
		if _, err := check.Run(ctx, []byte(`{"project_key": "/abs/p", "agent_name": "Blue"}`)); err != nil {
			t.Fatal(err)
		}
		if _, err := ts.readInbox(ctx, p, ref{name: "Blue", query: index.InboxQuery{Agent: "Blue"}}); err != nil {
			t.Fatal(err)
		}
		after, err := p.Agents.Whois(t.Context(), "Blue")
		if err != nil || after.LastActive.Equal(before.LastActive) == tt.active {
			t.Errorf("read by %q, active %v, then %v (%v)", tt.as, before.LastActive, after.LastActive, err)
		}
	}
}
