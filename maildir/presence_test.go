package maildir_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/index"
)

// inWindow returns the query for an agent that gets its notices in a tmux window.
func inWindow(agent string) maildir.IdleQuery {
	return maildir.IdleQuery{Agent: agent, Windows: true}
}

// window returns the window in which an agent must now get a notice about its mail, or nil if no notice is due.
func window(t *testing.T, p *maildir.Project, agent string) *maildir.IdleSeat {
	t.Helper()
	all, err := p.Sessions.IdleSeats(t.Context(), inWindow(agent))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		return nil
	}
	return &all[0]
}

// noticed returns the number of messages about which Bob must now get a notice.
func noticed(t *testing.T, p *maildir.Project) int {
	t.Helper()
	if w := window(t, p, "Bob"); w != nil {
		return w.New
	}
	return 0
}

// told records that Bob has been notified about the unread mail. It returns false if Bob must not get a notice.
func told(t *testing.T, p *maildir.Project, w *maildir.IdleSeat) bool {
	t.Helper()
	still, err := p.Sessions.Recheck(t.Context(), inWindow("Bob"), w)
	if err != nil {
		t.Fatal(err)
	}
	return still
}

func presence(t *testing.T, p *maildir.Project) string {
	t.Helper()
	info, err := p.Agents.Whois(t.Context(), "Bob")
	if err != nil {
		t.Fatal(err)
	}
	return info.Status
}

// TestNotice checks that each message is announced once to a ready agent, regardless of how the status was set or the
// message was read. After the agent has been at work or offline, unread messages must be announced again. A notice
// must not mark messages as read.
func TestNotice(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "store")
	s := storetest.Open(t, storetest.Config{Root: root})
	open := func() *maildir.Project {
		p, err := s.EnsureProject(t.Context(), shop)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := open()
	for _, n := range []string{"Ann", "Bob"} {
		if err := p.Agents.EnsureAgent(t.Context(), n, maildir.Registration{}); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string) string { return filepath.Join(p.Dir(), name) }
	for i, step := range []struct {
		do   string
		want int // number of messages to announce after the step
	}{
		{"send", 0}, // Bob has no status yet
		{"ready", 1},
		{"send", 2},
		{"told", 0},
		{"ready", 0},
		{"send", 1},
		{"pop", 1}, // pops the oldest message, which has already been announced
		{"told", 0},
		{"unread", 0},  // unread again, but it has been announced before
		{"work", 0},    // resets the notices
		{"send", 0},    // no notices while the agent is at work
		{"offline", 0}, // no notices while the agent is offline
		{"ready", 4},   // all unread mail is announced again
		{"told", 0},
		{"restart", 0}, // notices are remembered after a restart
		{"echo work", 0},
		{"echo ready", 4},
		{"told", 0},
		{"old", 1}, // pulled with Git: an older message that is new here
		{"told", 0},
		{"echo busy", 0},
		{"echo ready", 5},
		{"told", 0},
		{"lost", 5}, // if the run-time state is lost, all unread mail is announced again
		{"told", 0},
		{"damaged", 5},
		{"all", 0},
	} {
		var err error
		switch step.do {
		case "send":
			send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Body: fmt.Sprint(i)})
		case "ready", "work", "offline":
			err = p.Agents.SetPresence(t.Context(), "Bob", step.do)
		case "echo work", "echo ready", "echo busy":
			said := step.do[5:]
			if err = os.WriteFile(file("agents/Bob/status"), []byte(said+"\n"), 0o600); said == "busy" {
				said = "" // an invalid status is a problem and has no effect
			}
			await(t, func() bool { return presence(t, p) == said })
		case "told":
			told(t, p, window(t, p, "Bob"))
		case "pop":
			_, err = p.Box("Bob", format.Origin{}).Pop(t.Context())
		case "unread":
			_, err = p.Box("Bob", format.Origin{}).SetRead(t.Context(), inbox(t, p, "Bob").Messages[2].ID, false)
		case "restart":
			s.Stop()
			s = storetest.Open(t, storetest.Config{Root: root})
			p = open()
		case "old":
			dir := file("agents/Bob/inbox/2020")
			text := "---json\n{\"id\": \"old\", \"from\": \"Ann\", \"to\": [\"Bob\"], \"created\": \"2020-01-01T00:00:00Z\"}\n---\n\nb\n"
			if err = os.Mkdir(dir, 0o700); err == nil {
				err = os.WriteFile(filepath.Join(dir, "old.md"), []byte(text), 0o600)
			}
		case "lost", "damaged":
			s.Stop()
			script := "rm -r $0"
			if step.do == "damaged" {
				script = "for f in $0/*; do echo '[' >$f; done"
			}
			err = exec.Command("sh", "-c", script, file(".mailtree/sessions")).Run()
			s = storetest.Open(t, storetest.Config{Root: root})
			p = open()
		case "all":
			_, err = p.Box("Bob", format.Origin{}).Inbox(t.Context(), index.InboxQuery{}, true, maildir.Waiting{})
		}
		if err != nil {
			t.Fatalf("%d %s: %v", i, step.do, err)
		}
		byHand := step.do == "old" || strings.HasPrefix(step.do, "echo") // the server notices the change a moment later
		await(t, func() bool { return noticed(t, p) == step.want || !byHand })
		if got := noticed(t, p); got != step.want {
			t.Fatalf("%d %s: %d to be announced, want %d", i, step.do, got, step.want)
		}
		if step.want > 0 && step.do != "pop" && inbox(t, p, "Bob").Unread < step.want {
			t.Errorf("%d %s: marked read", i, step.do)
		}
	}
}

// TestNoticeMany checks that each message is announced only once, even if there are more unread messages than the
// recorded state can list.
func TestNoticeMany(t *testing.T) {
	t.Parallel()
	p := project(t, storetest.Config{NoWatcher: true}, "Ann", "Bob")
	const many = 203
	var all sync.WaitGroup
	for i := range 7 {
		all.Go(func() {
			for j := i; j < many; j += 7 {
				send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Body: "b"})
			}
		})
	}
	all.Wait()
	if err := p.Agents.SetPresence(t.Context(), "Bob", format.Ready); err != nil {
		t.Fatal(err)
	}
	w := window(t, p, "Bob")
	if w == nil || w.New != 200 {
		t.Fatalf("%+v", w)
	}
	told(t, p, w)
	for _, d := range inbox(t, p, "Bob").Messages[:10] { // read the newest; the state now includes older messages
		if _, err := p.Box("Bob", format.Origin{}).SetRead(t.Context(), d.ID, true); err != nil {
			t.Fatal(err)
		}
		if got := noticed(t, p); got != 0 {
			t.Fatalf("%d announced again", got)
		}
	}
}

// TestSeat checks that an agent's seat is the pane of its last call, even after a restart, and that a pane belongs to
// only one agent across all projects.
func TestSeat(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "store")
	s := storetest.Open(t, storetest.Config{Root: root, NoWatcher: true})
	seats := func() map[string]maildir.Pane {
		got := map[string]maildir.Pane{}
		for _, key := range []string{shop, "/abs/path/other"} {
			p, err := s.EnsureProject(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"Ann", "Bob"} {
				if err := p.Agents.EnsureAgent(t.Context(), name, maildir.Registration{}); err != nil {
					t.Fatal(err)
				}
				if err := p.Agents.SetPresence(t.Context(), name, format.Ready); err != nil {
					t.Fatal(err)
				}
				w := window(t, p, name)
				if w == nil {
					send(t, p, "Ann", maildir.Draft{To: []string{name}, Body: "b"})
					w = window(t, p, name)
				}
				if w.Pane != (maildir.Pane{}) {
					got[filepath.Base(key)+" "+name] = w.Pane
				}
			}
		}
		return got
	}
	one, two := maildir.Pane{Tmux: "/tmp/s,1,0", Pane: "%1", Window: "Ann"}, maildir.Pane{Tmux: "/tmp/s,1,0", Pane: "%2"}
	seats()
	in := func(key string) *maildir.Project {
		p, err := s.Project(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for i, tt := range []struct {
		key, agent string
		at         maildir.Pane
		want       map[string]maildir.Pane
	}{
		{shop, "Ann", one, map[string]maildir.Pane{"shop Ann": one}},
		{shop, "Bob", two, map[string]maildir.Pane{"shop Ann": one, "shop Bob": two}},
		{shop, "Ann", two, map[string]maildir.Pane{"shop Ann": two}},
		{"/abs/path/other", "Ann", two, map[string]maildir.Pane{"other Ann": two}},
		{"/abs/path/other", "Bob", one, map[string]maildir.Pane{"other Ann": two, "other Bob": one}},
		{"/abs/path/other", "Ann", maildir.Pane{}, map[string]maildir.Pane{"other Bob": one}},
	} {
		in(tt.key).Sessions.SetSeat(tt.agent, tt.at)
		if diff := cmp.Diff(tt.want, seats()); diff != "" {
			t.Errorf("%d: %s", i, diff)
		}
		if i%2 == 1 {
			s.Stop()
			s = storetest.Open(t, storetest.Config{Root: root, NoWatcher: true})
			if diff := cmp.Diff(tt.want, seats()); diff != "" {
				t.Errorf("%d, after a restart: %s", i, diff)
			}
		}
	}
}

// TestCovers checks that a folder belongs to a code base even if it is in another worktree of the code base, or if the
// project's key contains a symbolic link.
func TestCovers(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Config{NoWatcher: true})
	top := t.TempDir()
	repo, linked, link := filepath.Join(top, "repo"), filepath.Join(top, "linked"), filepath.Join(top, "link")
	script := `git init -q repo && git -C repo -c user.name=a -c user.email=a@b commit -q --allow-empty -m c && ` +
		`git -C repo worktree add -q ../linked && mkdir repo/sub linked/sub repo-b && ln -s repo link`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = top
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, tt := range []struct {
		key, dir string
		want     bool
	}{
		{repo, repo, true}, {repo, repo + "/sub", true}, {repo, linked, true}, {repo, linked + "/sub/", true}, {linked, repo, true}, {link, repo + "/sub", true},
		{repo, repo + "-b", false}, {repo, top, false}, {repo + "/sub", repo, true},
		{repo + "/sub", linked + "/sub", true}, {maildir.DefaultProject, top, false}, {repo, "", false},
	} {
		p, err := s.EnsureProject(t.Context(), tt.key)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Code.Covers(tt.dir); got != tt.want {
			t.Errorf("%s covers %s: %t", tt.key, tt.dir, got)
		}
	}
}

// TestNoticeMeanwhile checks that an agent gets no notice if its status changes to work after the server has looked
// up its mail. The agent must get the notice when it is ready again.
func TestNoticeMeanwhile(t *testing.T) {
	t.Parallel()
	p, err := storetest.Open(t, storetest.Config{}).EnsureProject(t.Context(), shop)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"Ann", "Bob"} {
		if err := p.Agents.EnsureAgent(t.Context(), n, maildir.Registration{}); err != nil {
			t.Fatal(err)
		}
	}
	status := func(s string) {
		t.Helper()
		if err := p.Agents.SetPresence(t.Context(), "Bob", s); err != nil {
			t.Fatal(err)
		}
	}
	status(format.Ready)
	send(t, p, "Ann", maildir.Draft{To: []string{"Bob"}, Body: "b"})
	w := window(t, p, "Bob")
	if w == nil {
		t.Fatal("there is nothing to report")
	}
	status(format.Work)
	if told(t, p, w) {
		t.Error("the agent got a notice although its status is work")
	}
	status(format.Ready)
	if got := noticed(t, p); got != 1 {
		t.Errorf("ready again, the agent must get a notice about %d messages", got)
	}
}
