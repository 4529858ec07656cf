package maildir_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
)

// TestVolley checks that wakes are delayed while only two agents exchange messages in a thread. Starting with the
// 30th message within an hour, each wake must be delayed by a minute and report the number of messages. Mail from
// other agents must wake the agent immediately.
func TestVolley(t *testing.T) {
	t.Parallel()
	var shift atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(shift.Load())) }
	p, k := sleeping(t, storetest.Config{Now: now})
	between := func(from, to string, n int) {
		for i := range n {
			send(t, p, from, maildir.Draft{To: []string{to}, Subject: fmt.Sprint("Thanks ", i), Body: "b", ThreadID: "thanks"})
		}
	}
	rests := func() bool {
		all, err := p.Sessions.IdleSeats(t.Context(), maildir.IdleQuery{Agent: "Bob"})
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all[0].Rest > 0
	}
	between("Bob", "Ann", 20)
	between("Ann", "Bob", 9)
	if rests() {
		t.Error("29 messages, but the wake waits")
	}
	between("Ann", "Bob", 1)
	if !rests() {
		t.Error("30 messages, but the wake does not wait")
	}
	came := awaitNews(t.Context(), p, k)
	select {
	case got := <-came:
		t.Fatalf("woken immediately: %+v", got)
	case <-time.After(300 * time.Millisecond): // six times the settle time
	}
	shift.Store(int64(volleyRest))
	between("Ann", "Bob", 1)
	if got := <-came; got.n.Volley != 31 || !strings.HasSuffix(got.n.String(), "exchanged 31 messages in this thread within the last hour.") {
		t.Errorf("%+v: %s", got, got.n)
	}

	between("Ann", "Bob", 1)
	came = awaitNews(t.Context(), p, k)
	if _, err := p.Agents.Register(t.Context(), maildir.Registration{NameHint: "Cy"}); err != nil {
		t.Fatal(err)
	}
	send(t, p, "Cy", maildir.Draft{To: []string{"Bob"}, Subject: "The build is red", Body: "b"})
	if got := <-came; got.n.New != 2 || got.n.Volley != 0 {
		t.Errorf("%+v: %s", got, got.n)
	}
	between("Cy", "Bob", 1) // another agent in the thread
	if rests() {
		t.Error("a third agent takes part, but the wake waits")
	}
}

// volleyRest is longer than the delay of a wake.
const volleyRest = 61 * time.Second
