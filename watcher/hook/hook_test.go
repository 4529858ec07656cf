package hook_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mailtree/fixtures/storetest"
	"mailtree/maildir"
	"mailtree/maildir/format"
	hooks "mailtree/maildir/hook"
	"mailtree/maildir/index"
	"mailtree/watcher/hook"
)

// TestRun checks that the command gets its arguments unchanged, the message file on standard input, and the variables
// that describe the message. Of the server's variables, it gets only PATH, LANG, LC_ALL and TZ.
func TestRun(t *testing.T) {
	t.Setenv("SECRET", "of the server") //nolint:paralleltest // the environment is the process's
	b := newBench(t, storetest.Config{NoWatcher: true})
	cmd := b.script("tell", "env | sort > DIR/env; cat > DIR/stdin; printf '%s\\n' \"$@\"; exit 3\n")
	b.hook("bob", hooks.Hook{Name: "tell", Cmd: []string{cmd, "a b", "$HOME; `id`", ""}})
	b.start(hook.Config{})
	id := b.send("token", "Plan; $(touch x)")
	if diff := cmp.Diff([]run{{Hook: b.p.Slug + "/bob/tell", Message: id, Exit: 3, Output: "a b\n$HOME; `id`\n\n"}},
		times(b.ended(1))); diff != "" {
		t.Error(diff)
	}
	m, err := b.p.Message(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(b.p.Dir(), "agents/bob/inbox", m.Created.Format("2006/01/02"), id+".md")
	want := map[string]string{
		"HOOK_NAME": "tell", "EVENT": "on_receive", "MAILBOX": "bob", "FROM": "ann@mailtree.local", "TO": "bob@mailtree.local",
		"SUBJECT":  "Plan; $(touch x)",
		"FILEPATH": file, "MESSAGE_ID": "<" + id + "@mailtree.local>", "ID": id, "DATE": m.Created.Format(time.RFC3339Nano),
		"ATTACHMENTS": "[]",
	}
	got := map[string]string{}
	for line := range strings.Lines(b.file("env")) {
		k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if name, ok := strings.CutPrefix(k, "MAILTREE_"); ok {
			got[name] = v
		} else if name, ok := strings.CutPrefix(k, "AIMX_"); ok && want[name] != v {
			t.Errorf("%s is %q", k, v)
		} else if !ok && !slices.Contains([]string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "PWD", "SHLVL", "_", "OLDPWD"}, k) {
			t.Errorf("%s is in the environment", k)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != b.file("stdin") {
		t.Errorf("%v; stdin:\n%s", err, b.file("stdin"))
	}
}

// times clears the times, which differ in each run.
func times(all []run) []run {
	for i := range all {
		all[i].Begun, all[i].Ended = "", ""
	}
	return all
}

// TestWhat checks which mail makes a hook run. An on_receive hook must run only for trusted mail, unless
// FireOnUntrusted is set. In that case, it must also run for mail that a user saved. An after_send hook must run for
// sent mail. No hook may run for mail older than the hook.
func TestWhat(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Config{})
	b.start(hook.Config{Workers: 1})
	b.send("token", "before") // the hooks do not exist yet
	b.hook("bob", hooks.Hook{Name: "trusting", Cmd: []string{"/bin/true"}, FireOnUntrusted: true})
	b.hook("bob", hooks.Hook{Name: "wary", Cmd: []string{"/bin/true"}})
	b.hook("ann", hooks.Hook{Name: "sent", Cmd: []string{"/bin/true"}, Event: hooks.AfterSend})
	b.hook("ann", hooks.Hook{Name: "other", Cmd: []string{"/bin/true"}})
	names := map[string]string{}
	names[b.send("none", "open")] = "open"
	b.save("agents/bob/inbox/hand.md", byHand("hand", "bob"))
	b.save("agents/bob/inbox/bad.md", "no header")
	b.until("the file is seen", func() bool { return len(b.runs(begun)) >= 3 })
	names[b.send("uid:7", "peer")] = "peer"
	names[b.send("token", "token")] = "token"
	var got []string
	for _, r := range b.ended(3 + 2*3) {
		_, name, _ := strings.Cut(r.Hook, "/")
		message, ok := names[r.Message]
		if !ok {
			message = r.Message
		}
		got = append(got, name+" "+message)
	}
	slices.Sort(got)
	want := []string{"ann/sent open", "ann/sent peer", "ann/sent token", "bob/trusting hand", "bob/trusting open",
		"bob/trusting peer", "bob/trusting token", "bob/wary peer", "bob/wary token"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestPull checks that mail that arrives through `git pull` is treated as untrusted when it fires hooks.
func TestPull(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Config{})
	b.hook("bob", hooks.Hook{Name: "wary", Cmd: []string{"/bin/true"}})
	b.hook("bob", hooks.Hook{Name: "trusting", Cmd: []string{"/bin/true"}, FireOnUntrusted: true})
	b.start(hook.Config{Workers: 1})
	if err := b.p.FlushHistory(t.Context()); err != nil {
		t.Fatal(err)
	}
	clone := filepath.Join(t.TempDir(), "clone")
	git := func(dir string, args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "git",
			append([]string{"-C", dir, "-c", "user.name=Ann", "-c", "user.email=ann@example.org"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git(".", "clone", "-q", b.p.Dir(), clone)
	file := filepath.Join(clone, "agents/bob/inbox/pulled.md")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(byHand("pulled", "bob")), 0o600); err != nil {
		t.Fatal(err)
	}
	git(clone, "add", ".")
	git(clone, "commit", "-q", "-m", "mail")
	git(b.p.Dir(), "pull", "-q", "--no-rebase", clone, "HEAD")
	b.until("the mail has arrived", func() bool {
		row, err := b.Index.Message(t.Context(), b.p.Slug, "pulled", index.WithoutBody, nil)
		return err == nil && row != nil
	})
	last := b.send("token", "last")
	var got []string
	for _, r := range b.ended(3) {
		got = append(got, strings.TrimPrefix(r.Hook, b.p.Slug+"/bob/")+" "+r.Message)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"trusting " + last, "trusting pulled", "wary " + last}, got); diff != "" {
		t.Error(diff)
	}
}

// TestSlow checks that a hook that never ends does not delay deliveries, replies, or other owners' hooks.
func TestSlow(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: hooks of two users")
	}
	b := newBench(t, storetest.Config{NoWatcher: true})
	if _, err := b.p.As(maildir.Caller{UID: 12345}, format.Origin{}).CreateMailbox(t.Context(), "cat"); err != nil {
		t.Fatal(err)
	}
	b.hook("bob", hooks.Hook{Name: "slow", Cmd: []string{b.waiting("slow")}})
	b.hook("cat", hooks.Hook{Name: "quick", Cmd: []string{"/bin/true"}})
	b.start(hook.Config{Workers: 3})
	for i := range 20 {
		b.send("token", fmt.Sprint(i))
	}
	if _, err := b.p.Box("ann", format.Origin{Auth: "token"}).Send(t.Context(), maildir.Draft{To: []string{"cat"}, Subject: "s", Body: "b"}); err != nil {
		t.Fatal(err)
	}
	if got := b.ended(1); len(got) != 1 || !strings.HasSuffix(got[0].Hook, "/cat/quick") {
		t.Errorf("ended: %+v", got)
	}
	if n := len(b.runs(begun)); n > 3 {
		t.Errorf("%d runs began, want at most 2 at once and one that has ended", n)
	}
	b.goOn()
	b.ended(21)
}

// TestTimeout checks that at the timeout the whole group gets TERM, and that the remaining processes later get KILL.
func TestTimeout(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Config{NoWatcher: true})
	stubborn := b.script("stubborn", "trap '' TERM; sleep 1000 & echo $! $$ > DIR/pids; wait; while :; do sleep 1000; done\n")
	polite := b.script("polite", "trap 'echo bye; exit 4' TERM; sleep 1000 & wait\n")
	leaving := b.script("leaving", "(trap '' TERM; exec sleep 1000) > /dev/null 2>&1 & echo $! > DIR/left; exec sleep 1000\n")
	for cmd, timeout := range map[string]int{stubborn: 1, polite: 5, leaving: 1} { // the polite command needs time to set its trap
		b.hook("bob", hooks.Hook{Name: filepath.Base(cmd), Cmd: []string{cmd}, Timeout: timeout})
	}
	b.start(hook.Config{})
	b.send("token", "s")
	for _, r := range b.ended(3) {
		want := run{Exit: -1, End: "timeout"}
		if strings.HasSuffix(r.Hook, "/polite") {
			want.Exit, want.Output = 4, "bye\n"
		}
		want.Hook, want.Message = r.Hook, r.Message
		if diff := cmp.Diff([]run{want}, times([]run{r})); diff != "" {
			t.Error(diff)
		}
	}
	for _, pid := range strings.Fields(b.file("pids") + b.file("left")) {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		b.until("process "+pid+" is gone", func() bool { return gone(n) })
	}
}

// TestUnending checks that the runner also ends a command that has left its process group. If even KILL does not end
// a command, the runner must not wait for the command.
func TestUnending(t *testing.T) {
	t.Parallel()
	other := exec.Command("/bin/true")
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := other.Run(); err != nil {
		t.Fatal(err)
	}
	if waited, err := hook.Stop(5*time.Millisecond, other.Process.Pid, make(chan error)); waited || err != nil {
		t.Errorf("waited: %t, %v", waited, err)
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3, to leave a process group")
	}
	b := newBench(t, storetest.Config{NoWatcher: true})
	b.hook("bob", hooks.Hook{Name: "leaving", Timeout: 5, Cmd: []string{b.script("leaving", `exec python3 -c '
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    time.sleep(1000)
while True:
    try:
        os.setpgid(0, child)
        break
    except OSError:
        time.sleep(0.01)
open("DIR/pids", "w").write("%d %d" % (os.getpid(), child))
time.sleep(1000)'
`)}})
	b.start(hook.Config{})
	b.send("token", "s")
	if r := b.ended(1)[0]; r.End != "timeout" {
		t.Errorf("%+v", r)
	}
	for i, pid := range strings.Fields(b.file("pids")) {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			syscall.Kill(n, syscall.SIGKILL) // otherwise, the child would run forever
		} else {
			b.until("the command has ended", func() bool { return gone(n) })
		}
	}
}

// gone reports whether a process has ended, whether or not its parent has waited on it.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// TestStop checks that the server ends running commands when it stops. The next server must run the waiting firings,
// but must not repeat runs that had begun.
func TestStop(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Config{NoWatcher: true})
	b.hook("bob", hooks.Hook{Name: "long", Cmd: []string{b.script("long",
		"echo $AIMX_ID >> DIR/ids; [ -e DIR/quick ] || exec sleep 1000\n")}})
	stop := b.start(hook.Config{Workers: 1})
	first, second := b.send("token", "1"), b.send("token", "2")
	b.until("the first has begun", func() bool { return b.file("ids") != "" })
	stop()
	if got := b.runs(ended); len(got) != 1 || got[0].Message != first || got[0].End != "the server stopped" {
		t.Errorf("%+v", got)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "quick"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.start(hook.Config{Workers: 1})
	b.ended(2)
	if diff := cmp.Diff(first+"\n"+second+"\n", b.file("ids")); diff != "" {
		t.Error(diff)
	}
}

// TestInputAndOutput checks that a command may ignore its input and leave its output open, and that the mark contains
// the last 64 KiB of the output.
func TestInputAndOutput(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Config{NoWatcher: true})
	b.hook("bob", hooks.Hook{Name: "deaf", Cmd: []string{"/bin/true"}})
	b.hook("bob", hooks.Hook{Name: "loud", Cmd: []string{b.script("loud",
		"head -c 300000 /dev/zero | tr '\\0' a; head -c 65535 /dev/zero | tr '\\0' b; echo >&2\n")}})
	b.hook("bob", hooks.Hook{Name: "father", Cmd: []string{b.script("father", "sleep 1000 & echo $! > DIR/child\n")}})
	b.hook("bob", hooks.Hook{Name: "missing", Cmd: []string{filepath.Join(b.dir, "nothere")}})
	b.start(hook.Config{})
	m, err := b.p.Box("ann", format.Origin{Auth: "token"}).Send(t.Context(), maildir.Draft{To: []string{"bob"}, Subject: "s",
		Body: strings.Repeat("x", 300_000)})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]run{"deaf": {}, "loud": {Output: strings.Repeat("b", 65535) + "\n"}, "father": {},
		"missing": {Exit: -1, End: "cannot start the command: fork/exec " + b.dir + "/nothere: no such file or directory"}}
	for _, r := range b.ended(4) {
		name := strings.TrimPrefix(r.Hook, b.p.Slug+"/bob/")
		w := want[name]
		w.Hook, w.Message = r.Hook, m.ID
		if diff := cmp.Diff([]run{w}, times([]run{r})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(b.file("child"))); err == nil {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// TestAsOwner checks that a server that runs as root runs the command as the owner of the mailbox, with the owner's
// groups and no others. It must not run the command after the mailbox has changed owners.
func TestAsOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: runs commands as other users")
	}
	b := newBench(t, storetest.Config{NoWatcher: true})
	for name, uid := range map[string]int{"daemon": 1, "stranger": 12345} {
		if _, err := b.p.As(maildir.Caller{UID: uid}, format.Origin{}).CreateMailbox(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		b.hook(name, hooks.Hook{Name: "id", Cmd: []string{"/usr/bin/id"}})
	}
	b.start(hook.Config{Workers: 1})
	send := func(to string) {
		if _, err := b.p.Box("ann", format.Origin{Auth: "token"}).Send(t.Context(), maildir.Draft{To: []string{to}, Subject: "s", Body: "b"}); err != nil {
			t.Fatal(err)
		}
	}
	send("daemon")
	send("stranger")
	daemon, err := exec.CommandContext(t.Context(), "/usr/bin/id", "1").Output()
	if err != nil {
		t.Fatal(err)
	}
	got := b.ended(2)
	slices.SortFunc(got, func(a, b run) int { return strings.Compare(a.Hook, b.Hook) })
	if got[0].Output != string(daemon) || !strings.HasPrefix(got[1].Output, "uid=12345 gid=65534") || strings.Contains(got[1].Output, "root") {
		t.Errorf("%q, want %q\n%q", got[0].Output, daemon, got[1].Output)
	}
	if err := os.WriteFile(filepath.Join(b.Root(), "owners.json"),
		[]byte(`{"`+b.p.Slug+`/daemon": 0, "`+b.p.Slug+`/stranger": 12345}`), 0o600); err != nil {
		t.Fatal(err)
	}
	send("daemon")
	send("stranger")
	b.ended(3)
	for _, r := range b.runs(begun)[2:] {
		if !strings.HasSuffix(r.Hook, "/stranger/id") {
			t.Errorf("a hook ran for another owner: %+v", r)
		}
	}
}

// TestNotAsOther checks that a server that does not run as root runs nothing for other users, no matter what
// hooks.json says.
func TestNotAsOther(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Config{NoWatcher: true, User: func() int { return 500 }})
	hooks := `[{"project": "` + b.p.Slug +
		`", "mailbox": "bob", "name": "x", "event": "on_receive", "cmd": ["/bin/true"], "created": "2026-01-01T00:00:00Z"}]`
	owners := `{"` + b.p.Slug + `/bob": 501}`
	for name, text := range map[string]string{"hooks.json": hooks, "owners.json": owners} {
		if err := os.WriteFile(filepath.Join(b.Root(), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.send("token", "s")
	log, err := b.OpenHookLog()
	if err != nil {
		t.Fatal(err)
	}
	missed, err := b.MissedFirings(t.Context(), log)
	if err != nil || len(missed) != 1 {
		t.Fatalf("%+v %v", missed, err)
	}
	if run, why, err := b.Fire(t.Context(), missed[0], log); run != nil || err != nil ||
		why != "this server cannot run commands as the owner of the mailbox" {
		t.Errorf("%+v %q %v", run, why, err)
	}
}

// TestStartedLater checks that the runner retries if a command temporarily cannot start. It must retry, because the
// run is already marked as begun, so no other run follows. In this test, the command's file is open for writing, so
// the system does not execute it.
func TestStartedLater(t *testing.T) {
	t.Parallel()
	b := newBench(t, storetest.Config{NoWatcher: true})
	cmd := b.script("later", "echo ran\n")
	f, err := os.OpenFile(cmd, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := exec.Command(cmd).Run(); !errors.Is(err, syscall.ETXTBSY) {
		t.Skip("this system can run a file while it is being written: ", err)
	}
	b.hook("bob", hooks.Hook{Name: "later", Cmd: []string{cmd}})
	tried := make(chan struct{})
	once := sync.OnceFunc(func() { close(tried) })
	b.start(hook.Config{Log: slog.New(slog.NewTextHandler(writer(func(line []byte) {
		if bytes.Contains(line, []byte("cannot start a hook right now")) || bytes.Contains(line, []byte("hook ran")) {
			once()
		}
	}), nil))})
	b.send("token", "now")
	<-tried
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := b.ended(1)[0]; got.Output != "ran\n" || got.Exit != 0 {
		t.Errorf("%+v", got)
	}
}

// writer is a function that receives each log line. It implements io.Writer.
type writer func(line []byte)

func (w writer) Write(line []byte) (int, error) {
	w(line)
	return len(line), nil
}
