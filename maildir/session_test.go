package maildir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// TestSessionsAtOnce checks that sessions that begin in the same folder at the same time act as different agents. If
// several hooks ask for notices at the same time, only one of them must get the notice about a message. Afterward, the
// sender must see that the message was announced.
func TestSessionsAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	p, err := s.EnsureProject(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	const most = 8
	atOnce := func(do func(i int) error) {
		t.Helper()
		var all sync.WaitGroup
		errs := make(chan error, most)
		for i := range most {
			all.Go(func() { errs <- do(i) })
		}
		all.Wait()
		for range most {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
	}
	key := func(round, i int) maildir.SessionKey {
		return maildir.SessionKey{Client: "claude", ID: fmt.Sprint(round, i)}
	}
	agents := [most]string{}
	for round := range 20 { // in each round, the names from the previous round are free again
		atOnce(func(i int) (err error) {
			if round > 0 {
				p.Sessions.End(t.Context(), key(round-1, i))
			}
			return nil
		})
		atOnce(func(i int) (err error) {
			agents[i], err = p.Sessions.Begin(t.Context(), maildir.SessionEvent{SessionKey: key(round, i), Dir: shop})
			return err
		})
		different := map[string]bool{}
		for _, name := range agents {
			different[name] = true
		}
		if len(different) != most || len(maildir.LiveSessions(p)) != most {
			t.Fatalf("round %d: %v", round, agents)
		}
	}
	sent, err := p.Box(agents[1], format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{agents[0]}, Subject: "s", Body: "b"})
	if err != nil {
		t.Fatal(err)
	}
	told := [most]int{}
	atOnce(func(i int) error {
		news, err := p.Sessions.Tell(t.Context(), key(19, 0))
		told[i] = news.New
		return err
	})
	sum := 0
	for _, n := range told {
		sum += n
	}
	page, err := p.Box(agents[1], format.Origin{}).Inbox(t.Context(), index.InboxQuery{ID: sent.ID}, false, maildir.Waiting{})
	if err != nil || len(page.Messages) != 1 || len(page.Messages[0].Receipts) != 1 {
		t.Fatalf("%v, %v", page, err)
	}
	if at := page.Messages[0].Receipts[0].AnnouncedAt; sum != 1 || at.IsZero() {
		t.Errorf("told %v, announced %v", told, at)
	}
}

// TestSessionOfGoneClient checks that a session ends if its client has exited without reporting it. The session's agent
// must go offline, and the call that is waiting to wake the session must return. If the client reports another event,
// the session must continue.
func TestSessionOfGoneClient(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true, GoneLook: time.Millisecond}, "Ann", "Bob", "Eve")
	client, end := startClient(t)
	k := maildir.SessionKey{Client: "claude", ID: "one"}
	visit := maildir.SessionEvent{SessionKey: k, Dir: shop, Agent: "Bob", Process: client}
	stays := maildir.SessionEvent{SessionKey: maildir.SessionKey{Client: "claude", ID: "two"}, Dir: shop, Agent: "Eve"}
	for _, v := range []maildir.SessionEvent{visit, stays} {
		if _, err := p.Sessions.Begin(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	p.Sessions.Introduce(k)
	toBob(t, p)
	if n, err := p.Sessions.Tell(t.Context(), k); err != nil || n.New != 1 {
		t.Fatal(n, err)
	}
	came := awaitNews(t.Context(), p, k)
	end()
	await(t, func() bool {
		info, err := p.Agents.Whois(t.Context(), "Bob")
		return err == nil && info.Status == format.Offline
	})
	toBob(t, p)
	if got := <-came; !got.over || got.n.New > 0 {
		t.Errorf("callers waiting to wake it: %+v", got)
	}
	if info, err := p.Agents.Whois(t.Context(), "Eve"); err != nil || info.Status != format.Ready {
		t.Errorf("an agent whose client continues: %+v, %v", info, err)
	}
	visit.Agent, visit.Process = "", ""
	name, err := p.Sessions.Begin(t.Context(), visit)
	if err != nil || name != "Bob" || presence(t, p) != format.Ready || p.Sessions.Introduce(k) {
		t.Errorf("the session continues as %s: %v, %s", name, err, presence(t, p))
	}
	if n, err := p.Sessions.Tell(t.Context(), k); err != nil || n.New != 1 || n.Unread != 2 {
		t.Errorf("after the session continued: %+v, %v", n, err)
	}
}

// TestSessionOfRemovedAgent checks that a session whose agent was removed gets another agent at its next event, and
// that the session's model is informed.
func TestSessionOfRemovedAgent(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{})
	p, err := s.EnsureProject(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	v := maildir.SessionEvent{SessionKey: maildir.SessionKey{Client: "claude", ID: "one"}, Dir: shop}
	was, err := p.Sessions.Begin(t.Context(), v)
	if err != nil || !p.Sessions.Introduce(v.SessionKey) {
		t.Fatal(was, err)
	}
	if err := os.RemoveAll(filepath.Join(p.Dir(), "agents", was)); err != nil {
		t.Fatal(err)
	}
	var is string
	until(t, "the session has a different agent", func() bool {
		if is, err = p.Sessions.Begin(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		return is != was
	})
	if !p.Sessions.Introduce(v.SessionKey) {
		t.Errorf("the session got no notice that it is now %s", is)
	}
}
