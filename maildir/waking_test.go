package maildir_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/seat"
)

// sleeping returns a project with an idle session whose agent is Bob.
func sleeping(t *testing.T, cfg storetest.Config) (*maildir.Project, maildir.SessionKey) {
	t.Helper()
	cfg.NoWatcher = true
	p := project(t, cfg, "Ann", "Bob")
	k := maildir.SessionKey{Client: "claude", ID: "one"}
	if _, err := p.Sessions.Begin(t.Context(), maildir.SessionEvent{SessionKey: k, Dir: "/p", Agent: "Bob"}); err != nil {
		t.Fatal(err)
	}
	return p, k
}

func toBob(t *testing.T, p *maildir.Project) string {
	t.Helper()
	return send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Subject: "s", Body: "b"}).ID
}

// news is the result of AwaitNews.
type news struct {
	n    seat.News
	over bool
	err  error
}

// awaitNews calls AwaitNews in a separate goroutine. It returns once the call is waiting or has returned.
func awaitNews(ctx context.Context, p *maildir.Project, k maildir.SessionKey) <-chan news {
	came := make(chan news, 1)
	err := waits.Go(`wake\.\(\*Sessions\)\.awaitTurn$`, func() {
		n, over, err := p.Sessions.AwaitNews(ctx, k, 50*time.Millisecond)
		came <- news{n, over, err}
	})
	if err != nil {
		came <- news{err: err}
	}
	return came
}

// TestAwaitNews checks that a caller that waits for an idle session gets a single result for a burst of mail.
func TestAwaitNews(t *testing.T) {
	t.Parallel()
	p, k := sleeping(t, storetest.Config{})
	p.Sessions.SetWorking(k, true)
	came := awaitNews(t.Context(), p, k)
	for range 3 {
		toBob(t, p)
	}
	await(t, func() bool {
		all, err := p.Sessions.IdleSeats(t.Context(), maildir.IdleQuery{Agent: "Bob"})
		return err == nil && len(all) == 0
	}) // the call is waiting now
	select {
	case got := <-came:
		t.Fatalf("woken while it was working: %+v", got)
	default:
	}
	p.Sessions.SetWorking(k, false)
	if got := <-came; got.err != nil || got.over || got.n.New != 3 || got.n.Unread != 3 {
		t.Errorf("%+v", got)
	}
	if s, _ := p.Sessions.Of(k); s.Wake.Outcome != seat.Woken {
		t.Errorf("%+v", s.Wake)
	}
	came = awaitNews(t.Context(), p, k)
	if all, err := p.Sessions.IdleSeats(t.Context(), maildir.IdleQuery{Agent: "Bob"}); err != nil || len(all) > 0 {
		t.Errorf("already notified: %+v, %v", all, err)
	}
	p.Sessions.End(t.Context(), k)
	if got := <-came; !got.over || got.n.New > 0 {
		t.Errorf("after its end: %+v", got)
	}
}

// TestAwaitNewsBeforeBegin checks that AwaitNews also waits until a session begins or continues, but not forever.
func TestAwaitNewsBeforeBegin(t *testing.T) {
	t.Parallel()
	p, k := sleeping(t, storetest.Config{})
	p.Sessions.End(t.Context(), k)
	fresh := maildir.SessionKey{Client: "claude", ID: "after clear"}
	for _, begins := range []maildir.SessionKey{k, fresh} {
		came := awaitNews(t.Context(), p, begins) // the hook that begins the session runs after this call
		if _, err := p.Sessions.Begin(t.Context(), maildir.SessionEvent{SessionKey: begins, Dir: "/p", Agent: "Bob"}); err != nil {
			t.Fatal(err)
		}
		toBob(t, p)
		if got := <-came; got.err != nil || got.over || got.n.New == 0 {
			t.Errorf("%s: %+v", begins.ID, got)
		}
		p.Sessions.End(t.Context(), begins)
	}
	if got := <-awaitNews(t.Context(), p, maildir.SessionKey{Client: "claude", ID: "never"}); !got.over {
		t.Errorf("%+v", got)
	}
}

// TestAwaitNewsOfGoneClient checks that no caller gets a notice about a session's mail after the session's client has
// ended.
func TestAwaitNewsOfGoneClient(t *testing.T) {
	t.Parallel()
	p, k := sleeping(t, storetest.Config{})
	client, end := startClient(t)
	if _, err := p.Sessions.Begin(t.Context(), maildir.SessionEvent{SessionKey: k, Dir: "/p", Process: client}); err != nil {
		t.Fatal(err)
	}
	came := awaitNews(t.Context(), p, k)
	end()
	toBob(t, p)
	if got := <-came; !got.over || got.n.New > 0 {
		t.Errorf("%+v", got)
	}
	if s, _ := p.Sessions.Of(k); len(s.Told) > 0 || s.Wake.Outcome != "" {
		t.Errorf("%+v", s)
	}
}

// startClient starts a process that acts as a client until end is called.
func startClient(t *testing.T) (client seat.Process, end func()) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("skipped here: the system gives no information about processes")
	}
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		t.Fatal("cat does not start")
	}
	end = sync.OnceFunc(func() {
		in.Close()
		_ = cmd.Wait()
	})
	t.Cleanup(end)
	return seat.ProcessOf(cmd.Process.Pid), end
}

// TestOneWaiter checks that only the last of several callers keeps waiting for a session.
func TestOneWaiter(t *testing.T) {
	t.Parallel()
	p, k := sleeping(t, storetest.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	all := []<-chan news{awaitNews(ctx, p, k), awaitNews(ctx, p, k)}
	first := slices.IndexFunc([]news{recv(all[0], all[1]), {}}, func(n news) bool { return n.over })
	if first != 0 {
		t.Error("neither call was told to stop")
	}
	toBob(t, p)
	if got := recv(all[0], all[1]); got.over || got.n.New != 1 {
		t.Errorf("the other: %+v", got)
	}
	if got := <-awaitNews(ctx, p, maildir.SessionKey{Client: "claude", ID: "unknown"}); !got.over {
		t.Errorf("of an unknown session: %+v", got)
	}
}

func recv(a, b <-chan news) news {
	select {
	case n := <-a:
		return n
	case n := <-b:
		return n
	}
}

// TestSleepers checks which agents the server tries to wake and for how long, and which agents are reported because
// they could not be woken.
func TestSleepers(t *testing.T) {
	t.Parallel()
	var later atomic.Int64
	p, k := sleeping(t, storetest.Config{Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	sleepers := func() (ids []string) {
		t.Helper()
		all, err := p.Sessions.IdleSeats(t.Context(), maildir.IdleQuery{Agent: "Bob"})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			ids = append(ids, s.Newest)
		}
		return ids
	}
	unwoken := func() int {
		t.Helper()
		all, err := p.Sessions.Unwoken(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if got := sleepers(); got != nil {
		t.Errorf("without mail: %v", got)
	}
	first := toBob(t, p)
	if got := sleepers(); !slices.Equal(got, []string{first}) {
		t.Errorf("%v, want %s", got, first)
	}
	p.Sessions.NoteWake(k, seat.Wake{Outcome: seat.Nobody, For: first})
	if got := sleepers(); len(got) != 1 {
		t.Errorf("a failed wake is not retried: %v", got)
	}
	if unwoken() != 0 {
		t.Error("reported too early")
	}
	later.Store(int64(maildir.UnwokenAfter))
	if unwoken() != 1 {
		t.Error("not reported")
	}
	p.Sessions.NoteWake(k, seat.Wake{Outcome: seat.Typed, For: first})
	if got := sleepers(); got != nil {
		t.Errorf("a successful wake is repeated: %v", got)
	}
	if unwoken() != 0 {
		t.Error("reported although it was woken")
	}
	second := toBob(t, p)
	if got := sleepers(); !slices.Equal(got, []string{second}) {
		t.Errorf("after more mail: %v, want %s", got, second)
	}
	p.Sessions.End(t.Context(), k)
	if got := sleepers(); got != nil || unwoken() != 1 {
		t.Errorf("after the end: %v, %d reported", got, unwoken())
	}
	if _, err := p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, true, maildir.Waiting{}); err != nil || unwoken() != 0 {
		t.Errorf("after the mail was read: %d reported, %v", unwoken(), err)
	}
}

// TestSessionIs checks that a caller waiting for a session is woken when the client's files say that the session is
// idle. If the user answers "No" to a permission prompt, the session must no longer be considered waiting at that
// prompt. A state from an earlier turn, or of an ended or unknown session, must have no effect.
func TestSessionIs(t *testing.T) {
	t.Parallel()
	p, k := sleeping(t, storetest.Config{})
	p.Sessions.SetWorking(k, true)
	p.Sessions.SetState(k, 0, seat.Asks)
	if s, _ := p.Sessions.Of(k); !s.Working || !s.Asks || !p.Sessions.Asks("Bob") {
		t.Errorf("at a question: %+v", s)
	}
	p.Sessions.SetState(k, 0, seat.Works)
	if s, _ := p.Sessions.Of(k); !s.Working || s.Asks {
		t.Errorf("after an answer: %+v", s)
	}
	p.Sessions.SetState(k, 0, seat.Asks)
	came := awaitNews(t.Context(), p, k)
	toBob(t, p)
	p.Sessions.SetState(k, 0, seat.Idles)
	if got := <-came; got.err != nil || got.over || got.n.New != 1 {
		t.Errorf("%+v", got)
	}
	if s, _ := p.Sessions.Of(k); s.Working || s.Asks {
		t.Errorf("after No: %+v", s)
	}
	before, now := p.Sessions.Prompted(k), p.Sessions.Prompted(k)
	p.Sessions.SetState(k, now, seat.Asks)
	p.Sessions.SetState(k, before, seat.Idles)
	if s, _ := p.Sessions.Of(k); !s.Working || !s.Asks {
		t.Errorf("after the end of the previous turn was read: %+v", s)
	}
	p.Sessions.SetState(k, now, seat.Idles)
	if s, _ := p.Sessions.Of(k); s.Working || s.Asks {
		t.Errorf("after the end of the current turn was read: %+v", s)
	}
	p.Sessions.End(t.Context(), k)
	p.Sessions.SetState(k, 0, seat.Asks)
	if s, _ := p.Sessions.Of(k); s.Asks {
		t.Errorf("after its end: %+v", s)
	}
	p.Sessions.SetState(maildir.SessionKey{Client: "claude", ID: "unknown"}, 0, seat.Works)
	if s, ok := p.Sessions.Of(maildir.SessionKey{Client: "claude", ID: "unknown"}); ok {
		t.Errorf("unknown: %+v", s)
	}
}

// TestUnwakeable checks the reasons why mail cannot wake an agent. If mail can wake or reach an agent, there must be
// no reason.
func TestUnwakeable(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{NoWatcher: true}).Store
	p := projectIn(t, s, "Ann", "Bob")
	k := maildir.SessionKey{Client: "claude", ID: "one"}
	if _, err := p.Sessions.Begin(t.Context(), maildir.SessionEvent{SessionKey: k, Dir: "/p", Agent: "Bob"}); err != nil {
		t.Fatal(err)
	}
	client, end := startClient(t)
	is := func(name, want string) {
		t.Helper()
		w, err := p.Agents.Whois(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Sessions.Unwakeable(&w.AgentRow); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	is("Ann", "it has no session with the hooks that mailtree setup installs")
	is("Bob", "its client is not waiting for mail and is not running in tmux")
	p.Sessions.SetWorking(k, true)
	is("Bob", "")
	p.Sessions.SetState(k, 0, seat.Asks)
	is("Bob", "its client is waiting for the user's answer at a permission prompt")
	p.Sessions.SetState(k, 0, seat.Idles)
	ctx, cancel := context.WithCancel(t.Context())
	came := awaitNews(ctx, p, k)
	await(t, func() bool {
		return slices.ContainsFunc(p.Sessions.WakeStatuses()["Bob"], func(r maildir.WakeStatus) bool { return r.Waits })
	})
	is("Bob", "")
	cancel()
	<-came
	in := maildir.SessionKey{Client: "gemini", ID: "two"}
	at := maildir.SessionEvent{SessionKey: in, Dir: "/p", Agent: "Bob", Pane: maildir.Pane{Tmux: "/tmp/s,1,0", Pane: "%1"}, Process: client}
	if _, err := p.Sessions.Begin(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	is("Bob", "its client is not waiting for mail, and this server does not type into tmux windows (NUDGE=tmux turns that on)")
	done := s.Types()
	is("Bob", "")
	p.Sessions.NoteWake(in, seat.Wake{Outcome: seat.Nobody, Why: "it has no tmux window on this machine"})
	is("Bob", "the last attempt failed: it has no tmux window on this machine")
	done()
	end()
	p.Sessions.End(t.Context(), k)
	is("Bob", "none of its sessions is open")
}
