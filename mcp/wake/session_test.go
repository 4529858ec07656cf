package wake_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir"
	"mailtree/maildir/seat"
	"mailtree/mcp/wake"
)

// sit begins a session for Bob in the given client.
func (d *desk) sit(client string, v maildir.SessionEvent) maildir.SessionKey {
	d.t.Helper()
	v.SessionKey, v.Agent = maildir.SessionKey{Client: client, ID: "thread-1"}, "Bob"
	if v.Dir == "" {
		v.Dir = d.repo
	}
	_, err := d.p.Sessions.Begin(d.t.Context(), v)
	d.check(err)
	return v.SessionKey
}

// passAs runs one pass and returns how Bob was woken, or why he was not.
func (d *desk) passAs(by wake.By) (got string) {
	d.t.Helper()
	d.check(d.n.Pass(d.t.Context(), by, func(o wake.Outcome) { got += o.How + ": " + o.Why + "\n" }))
	return strings.TrimSuffix(got, "\n")
}

func (d *desk) outcome(k maildir.SessionKey) string {
	s, _ := d.p.Sessions.Of(k)
	return s.Wake.Outcome
}

// TestTypeForSession checks that the notice is typed into a session's tmux pane if typing is allowed and the client
// cannot be woken in another way. The notice must be typed only once for the same messages.
func TestTypeForSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	w := d.tmux.Window("work", "gemini", d.repo)
	k := d.sit("gemini", maildir.SessionEvent{Pane: maildir.Pane{Tmux: w.Tmux, Pane: w.Pane}})
	types := wake.By{Types: true}
	for i, step := range []struct {
		do    func()
		by    wake.By
		want  string
		typed []string
		how   string
	}{
		{func() {}, types, "", nil, ""},
		{func() { d.send("b") }, wake.By{}, "nobody to wake: its client does not wait for mail, and this server does not type into tmux windows", nil, seat.Nobody},
		{func() { d.p.Sessions.SetWorking(k, true) }, types, ": it is working", nil, seat.Nobody},
		{func() { d.p.Sessions.SetWorking(k, false) }, types, "typed: ", []string{wake.Text("check_my_messages")}, seat.Typed},
		{func() {}, types, "", nil, seat.Typed},
		{func() { d.send("b"); d.send("c") }, types, "typed: ", []string{wake.Text("check_my_messages")}, seat.Typed},
		{func() { d.send("b"); d.read() }, types, "", nil, seat.Typed},
		{func() { d.send("b"); d.p.Sessions.End(t.Context(), k) }, types, "", nil, seat.Typed},
	} {
		step.do()
		if got := d.passAs(step.by); got != step.want || d.outcome(k) != step.how {
			t.Fatalf("%d: %q (%s), want %q (%s)", i, got, d.outcome(k), step.want, step.how)
		}
		if diff := cmp.Diff(step.typed, w.Typed(), cmp.Transformer("n", func(l []string) string { return strings.Join(l, "\n") })); diff != "" {
			t.Fatalf("%d: %s", i, diff)
		}
	}
}

// TestNudge checks that an agent is woken again for the same messages if the user requests it and the messages are
// still unread.
func TestNudge(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	w := d.tmux.Window("work", "gemini", d.repo)
	d.sit("gemini", maildir.SessionEvent{Pane: maildir.Pane{Tmux: w.Tmux, Pane: w.Pane}})
	nudge := func() (got string) {
		t.Helper()
		by := wake.By{Types: true, Again: true}
		d.check(d.n.Nudge(t.Context(), by, d.p.Slug, "Bob", func(o wake.Outcome) { got += o.How + ": " + o.Why }))
		return got
	}
	if got := nudge(); got != "" {
		t.Errorf("without mail: %q", got)
	}
	d.send("b")
	for i := range 2 {
		if got := nudge(); got != "typed: " {
			t.Errorf("%d: %q", i, got)
		}
		w.Await(i + 1)
	}
	d.read()
	if got := nudge(); got != "" {
		t.Errorf("with nothing unread: %q", got)
	}
}

// TestRetry checks that a failed attempt to wake an agent is repeated, and that the failure is reported once.
func TestRetry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	w := d.tmux.Window("work", "gemini", d.repo)
	d.sit("gemini", maildir.SessionEvent{Pane: maildir.Pane{Tmux: w.Tmux, Pane: w.Pane}})
	d.tmux.Run("send-keys", "-t", w.Pane, "-l", "half a line")
	w.Shows("half a line")
	var mu sync.Mutex
	why := map[string]int{}
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		if err := d.n.Watch(ctx, wake.By{Types: true}, func(o wake.Outcome) { mu.Lock(); defer mu.Unlock(); why[o.Why]++ }); err != nil {
			t.Error(err)
		}
	})
	d.send("b")
	d.await(func() bool { mu.Lock(); defer mu.Unlock(); return len(why) == 1 })
	d.tmux.Run("send-keys", "-t", w.Pane, "Enter")
	w.Await(2) // the earlier line, then the notice
	stop()
	watching.Wait()
	if diff := cmp.Diff([]string{"half a line", wake.Text("check_my_messages")}, w.Typed()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"its window is in use: it has text in its prompt": 1, "": 1}, why); diff != "" {
		t.Error(diff)
	}
}

// TestQueueCodex checks that the notice is queued for a thread that a running Codex has loaded. It must not be queued
// for other threads, or for a thread of `codex exec`.
func TestQueueCodex(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	home := t.TempDir()
	locks := filepath.Join(home, "thread-writer-locks")
	d.check(os.Mkdir(locks, 0o700))
	queue := filepath.Join(d.repo, "queue") // python3 holds the lock, so the server runs python3 instead of Codex, with this script as the argument
	d.check(os.WriteFile(queue, []byte(`import os, sys; print(os.environ["CODEX_HOME"], *sys.argv[1:], file=open("queued", "a"))`), 0o600))
	hold := func(args ...string) maildir.SessionEvent {
		t.Helper()
		const lock = `import fcntl, os, sys
f = open(os.environ["CODEX_HOME"] + "/thread-writer-locks/thread-1.lock", "w")
fcntl.flock(f, fcntl.LOCK_EX)
print("has", flush=True)
sys.stdin.read()`
		cmd := exec.Command("python3", append(args, "-c", lock)...)
		cmd.Env = append(os.Environ(), "CODEX_HOME="+home)
		in, err := cmd.StdinPipe()
		d.check(err)
		out, err := cmd.StdoutPipe()
		d.check(err)
		d.check(cmd.Start())
		t.Cleanup(func() { in.Close(); cmd.Wait() })
		if _, err := out.Read(make([]byte, 4)); err != nil {
			t.Fatal(err)
		}
		return maildir.SessionEvent{Process: seat.ProcessOf(cmd.Process.Pid)}
	}
	k := d.sit("codex", maildir.SessionEvent{})
	d.send("b")
	const nobody = "nobody to wake: no running Codex has the session's thread loaded"
	if got := d.passAs(wake.By{}); got != nobody || d.outcome(k) != seat.Nobody {
		t.Errorf("%q", got)
	}
	d.p.Sessions.End(t.Context(), k)
	d.sit("codex", hold())
	if got := d.passAs(wake.By{}); got != "queued: " || d.outcome(k) != seat.Queued {
		t.Errorf("%q", got)
	}
	if got := d.passAs(wake.By{}); got != "" {
		t.Errorf("the second time: %q", got)
	}
	got, err := os.ReadFile(filepath.Join(d.repo, "queued"))
	if want := home + " --thread thread-1 --message " + wake.Text("check_my_messages") + "\n"; err != nil || string(got) != want {
		t.Errorf("%q %v, want %q", got, err, want)
	}
	d.check(os.WriteFile(queue, []byte(`import sys; print("no thread", file=sys.stderr); sys.exit(3)`), 0o600))
	d.send("c")
	if got := d.passAs(wake.By{}); !strings.Contains(got, `exit status 3 ("no thread`) || d.outcome(k) != seat.Nobody {
		t.Errorf("%q", got)
	}
}

// TestTurnEnds checks that an agent that was working when its mail arrived is woken as soon as its turn ends, instead
// of at the next retry.
func TestTurnEnds(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	w := d.tmux.Window("work", "gemini", d.repo)
	k := d.sit("gemini", maildir.SessionEvent{Pane: maildir.Pane{Tmux: w.Tmux, Pane: w.Pane}})
	n := wake.New(wake.Config{Store: d.store.Store, Settle: time.Millisecond, Pause: time.Millisecond, Retry: time.Hour})
	ctx, stop := context.WithCancel(t.Context())
	seen := make(chan string, 10)
	var watching sync.WaitGroup
	watching.Go(func() {
		if err := n.Watch(ctx, wake.By{Types: true}, func(o wake.Outcome) { seen <- o.How + o.Why }); err != nil {
			t.Error(err)
		}
	})
	d.p.Sessions.SetWorking(k, true)
	d.send("b")
	if got := <-seen; got != "it is working" {
		t.Errorf("during the turn: %q", got)
	}
	d.p.Sessions.SetState(k, 0, seat.Idles)
	if got := <-seen; got != seat.Typed {
		t.Errorf("after the turn: %q", got)
	}
	w.Await(1)
	stop()
	watching.Wait()
}
