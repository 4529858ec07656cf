package wake_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/tmuxtest"
	"mailtree/fixtures/waits"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/mcp/wake"
)

func TestMain(m *testing.M) {
	if err := storetest.Isolate(os.Setenv); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// desk is a project with a code base in which agents work, and a tmux server.
type desk struct {
	t     *testing.T
	tmux  *tmuxtest.Server
	store *storetest.Store
	p     *maildir.Project
	repo  string
	n     *wake.Waker
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{
		t:     t,
		tmux:  tmuxtest.Start(t),
		store: storetest.Open(t, storetest.Config{}),
		repo:  t.TempDir(),
	}
	var err error
	if d.p, err = d.store.EnsureProject(t.Context(), d.repo); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Ann", "Bob"} {
		d.check(d.p.Agents.EnsureAgent(t.Context(), name, maildir.Registration{}))
	}
	d.n = wake.New(wake.Config{
		Store:  d.store.Store,
		Settle: time.Millisecond,
		Pause:  time.Millisecond,
		Retry:  10 * time.Millisecond,
	})
	return d
}

func (d *desk) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) send(body string) {
	d.t.Helper()
	_, err := d.p.Box("Ann", format.Origin{}).Send(d.t.Context(), maildir.Draft{
		To:      []string{"Bob"},
		Subject: "$(touch x)\u200b",
		Body:    body,
	})
	d.check(err)
}

func (d *desk) status(s string) {
	d.t.Helper()
	d.check(d.p.Agents.SetPresence(d.t.Context(), "Bob", s))
}

// echo writes the status file the way a user does in a shell, and waits until the server has read it.
func (d *desk) echo(s string) {
	d.t.Helper()
	d.check(os.WriteFile(filepath.Join(d.p.Dir(), "agents/Bob/status"), []byte(s+"\n"), 0o600))
	d.await(func() bool {
		info, err := d.p.Agents.Whois(d.t.Context(), "Bob")
		d.check(err)
		return info.Status == s
	})
}

func (d *desk) await(ok func() bool) {
	d.t.Helper()
	waits.Until(d.t, "the awaited condition holds", ok)
}

// pass runs one pass and returns its outcomes, or "" if no agent had to be woken.
func (d *desk) pass(session string) (got string) {
	d.t.Helper()
	d.check(d.n.Pass(d.t.Context(), wake.By{Tmux: session, Types: true}, func(o wake.Outcome) { got += o.Agent + ": " + o.Why + "\n" }))
	return strings.TrimSuffix(got, "\n")
}

func (d *desk) unread() int {
	d.t.Helper()
	page, err := d.p.Box("Bob", format.Origin{}).Inbox(d.t.Context(), index.InboxQuery{Peek: true}, false, maildir.Waiting{})
	d.check(err)
	return page.Unread
}

const told = "Bob: "

// TestNoticeNamesTool checks that the notice names the tool that the agent uses to read its mail. This is a tool of the
// toolset that created the agent, or agentmail's tool if the agent has made a call from its pane.
func TestNoticeNamesTool(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, of := range map[string]struct{ program, tool string }{
		"Mia":   {"claude-code", "check_my_messages"},
		"Pat":   {"postal", "check_mail"},
		"Tom":   {"agentmail", "receive"},
		"Seats": {"claude-code", "receive"},
	} {
		w := d.tmux.Window("work", name, d.repo)
		d.check(d.p.Agents.EnsureAgent(t.Context(), name, maildir.Registration{Program: of.program}))
		if name == "Seats" {
			d.p.Sessions.SetSeat(name, maildir.Pane{Tmux: w.Tmux, Pane: w.Pane})
		}
		d.check(d.p.Agents.SetPresence(t.Context(), name, "ready"))
		_, err := d.p.Box("Ann", format.Origin{}).Send(t.Context(), maildir.Draft{To: []string{name}, Subject: "s", Body: "b"})
		d.check(err)
		if got := d.pass(w.Tmux); got != name+": " {
			t.Errorf("%s: %q", name, got)
		}
		want := []string{"You have new mail. Read it with " + of.tool + "."}
		if diff := cmp.Diff(want, w.Typed()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestPass checks that the notice for new mail is typed only once, and only to an agent that is ready.
func TestPass(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	w := d.tmux.Window("work", "Bob", d.repo)
	for i, step := range []struct {
		do    func()
		want  string
		typed []string
	}{
		{func() { d.send("b") }, "", nil}, // Bob has not set a status
		{func() { d.status("work") }, "", nil},
		{func() { d.status("ready") }, told, []string{wake.Text("check_my_messages")}},
		{func() {}, "", nil},
		{func() { d.send("; rm -rf /\n\nC-c"); d.send("two") }, told, []string{wake.Text("check_my_messages")}},
		{func() { d.status("ready") }, "", nil},
		{func() { d.status("work"); d.send("b") }, "", nil},
		{func() { d.status("offline") }, "", nil},
		{func() { d.echo("ready") }, told, []string{wake.Text("check_my_messages")}},
		{func() { d.echo("work"); d.echo("ready") }, told, []string{wake.Text("check_my_messages")}},
		{func() { d.send("read at once"); d.read() }, "", nil},
		{func() { d.status("work"); d.status("ready") }, "", nil}, // all mail has been read
	} {
		step.do()
		unread := d.unread()
		if got := d.pass(w.Tmux); got != step.want {
			t.Fatalf("%d: %q, want %q", i, got, step.want)
		}
		if diff := cmp.Diff(step.typed, w.Typed(), cmp.Transformer("n", func(l []string) string { return strings.Join(l, "\n") })); diff != "" {
			t.Fatalf("%d: %s", i, diff)
		}
		if d.unread() != unread {
			t.Fatalf("%d: %d unread, then %d", i, unread, d.unread())
		}
	}
}

func (d *desk) read() {
	d.t.Helper()
	_, err := d.p.Box("Bob", format.Origin{}).Inbox(d.t.Context(), index.InboxQuery{}, true, maildir.Waiting{})
	d.check(err)
}

// TestFind checks that the right window is found for an agent. If there is no suitable window, the right reason must be
// given.
func TestFind(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	linked := filepath.Join(t.TempDir(), "linked")
	cmd := exec.Command("sh", "-c", "git init -q && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m c && git worktree add -q "+linked)
	cmd.Dir = d.repo
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	ann := d.tmux.Window("work", "Ann", d.repo)
	seat := func(w *tmuxtest.Window, name string) {
		d.p.Sessions.SetSeat("Bob", maildir.Pane{Tmux: w.Tmux, Pane: w.Pane, Window: name})
	}
	d.send("b")
	refused := func(session, why string) {
		t.Helper()
		if got := d.pass(session); got != told+why {
			t.Errorf("got %q, want %q", got, told+why)
		}
	}
	hears := func(w *tmuxtest.Window, session string) {
		t.Helper()
		d.status("work")
		d.status("ready")
		refused(session, "")
		if got := len(w.Typed()); got != 1 {
			t.Errorf("%d lines typed", got)
		}
	}
	d.status("ready")
	refused("", "it has not called the server from a tmux window")
	refused("/tmp/../s,1,1", "TMUX has an unexpected value (expected socket,pid,session)")
	refused(ann.Tmux, "it has no tmux window on this machine")
	elsewhere := d.tmux.Window("work", "Bob", t.TempDir()) // a window with the same name in another project
	refused(ann.Tmux, "it has no tmux window on this machine")
	bob := d.tmux.Window("work", "Bob", linked)
	hears(bob, ann.Tmux)
	d.tmux.Run("rename-window", "-t", bob.Pane, " b ob")
	hears(bob, ann.Tmux)
	d.tmux.Run("rename-window", "-t", bob.Pane, "Bob")
	second := d.tmux.Window("work", "bo b", d.repo)
	d.send("b")
	refused(ann.Tmux, "several tmux windows have the agent's name")
	other := d.tmux.Window("other", "zsh", "/") // this window has a different name
	seat(other, "")
	hears(other, "")
	seat(elsewhere, "Bob")
	hears(elsewhere, "")
	d.tmux.Run("kill-pane", "-t", second.Pane)
	d.tmux.Run("rename-window", "-t", elsewhere.Pane, "Carol") // now the window has another agent's name
	d.send("b")
	refused("", "it has no tmux window on this machine")
	hears(bob, bob.Tmux)
	seat(bob, "Bob")
	d.send("b")
	d.tmux.Run("copy-mode", "-t", bob.Pane)
	d.tmux.Split(bob, linked) // the new pane is the active one, but it is not the agent's pane
	refused(bob.Tmux, "its window is in copy mode, or the window's input is disabled or synchronized")
	d.tmux.Run("send-keys", "-t", bob.Pane, "-X", "cancel")
	d.tmux.Run("set-option", "-w", "-t", bob.Pane, "synchronize-panes", "on")
	refused("", "its window is in copy mode, or the window's input is disabled or synchronized")
	d.tmux.Run("set-option", "-w", "-t", bob.Pane, "synchronize-panes", "off")
	hears(bob, "")
	d.tmux.Run("kill-pane", "-t", bob.Pane)
	d.send("b")
	refused("", "tmux says: can't find pane: "+bob.Pane)
	d.tmux.Run("kill-server")
	if got := d.pass(""); !strings.HasPrefix(got, told+"tmux says: ") {
		t.Errorf("%q", got)
	}
	if d.unread() != 5 {
		t.Errorf("%d unread", d.unread())
	}
}

// TestMeanwhile checks that a message that is read while tmux is being queried is not announced, and that only one of
// many concurrent passes queries tmux.
func TestMeanwhile(t *testing.T) {
	d := newDesk(t)
	w := d.tmux.Window("work", "Bob", d.repo)
	real, err := exec.LookPath("tmux")
	d.check(err)
	slow := t.TempDir()
	asked, answer := filepath.Join(slow, "asked"), filepath.Join(slow, "answer")
	script := "#!/bin/sh\ncase \"$*\" in *list-panes*) echo >>" + asked + "; until [ -e " + answer + " ]; do sleep 0.01; done;; esac\nexec " + real + " \"$@\"\n"
	d.check(os.WriteFile(filepath.Join(slow, "tmux"), []byte(script), 0o700))
	t.Setenv("PATH", slow+":"+os.Getenv("PATH"))
	d.status("ready")
	look := func(meanwhile func()) (got []wake.Outcome, asks int) {
		os.Remove(asked)
		os.Remove(answer)
		d.send("b")
		var all sync.WaitGroup
		var mu sync.Mutex
		for range 8 {
			all.Go(func() {
				err := d.n.Pass(t.Context(), wake.By{Tmux: w.Tmux, Types: true}, func(o wake.Outcome) {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, o)
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		d.await(func() bool { _, err := os.Stat(asked); return err == nil })
		meanwhile()
		d.check(os.WriteFile(answer, nil, 0o600))
		all.Wait()
		data, err := os.ReadFile(asked)
		d.check(err)
		return got, len(data)
	}
	if got, asks := look(d.read); len(got) != 0 || asks != 1 {
		t.Errorf("%v, tmux asked %d times", got, asks)
	}
	if got, asks := look(func() {}); len(got) != 1 || got[0].Why != "" || asks != 1 {
		t.Errorf("%v, tmux asked %d times", got, asks)
	}
	if typed := w.Typed(); len(typed) != 1 {
		t.Errorf("typed %q", typed)
	}
}

// TestWatch checks that each message is announced once, when it arrives, even if there are several watchers. A message
// that has already been read must not be announced. If an agent could not be notified, it must be notified as soon as
// possible.
func TestWatch(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	w := d.tmux.Window("work", "Bob", d.repo)
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	var mu sync.Mutex
	why := map[string]int{}
	for range 3 {
		watching.Go(func() {
			err := d.n.Watch(ctx, wake.By{Tmux: w.Tmux, Types: true}, func(o wake.Outcome) {
				mu.Lock()
				defer mu.Unlock()
				why[o.Why]++
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	d.status("ready")
	const many = 5
	for i := range many {
		d.send("b")
		d.await(func() bool { return w.Lines() == i+1 })
		if i%2 == 0 {
			d.read()
		}
	}
	d.status("work")
	d.send("b")
	d.tmux.Run("copy-mode", "-t", w.Pane)
	d.echo("ready")
	busy := "its window is in copy mode, or the window's input is disabled or synchronized"
	d.await(func() bool { mu.Lock(); defer mu.Unlock(); return why[busy] == 3 }) // each of the three watchers reports the window once
	if w.Lines() != many {
		t.Errorf("%d lines", w.Lines())
	}
	d.tmux.Run("send-keys", "-t", w.Pane, "-X", "cancel")
	d.await(func() bool { return w.Lines() == many+1 })
	stop()
	watching.Wait()
	if got := len(w.Typed()); got != many+1 || why[""] != many+1 || why[busy] != 3 {
		t.Errorf("%d lines typed, %v", got, why)
	}
	if err := d.n.Pass(ctx, wake.By{Types: true}, func(wake.Outcome) {}); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
