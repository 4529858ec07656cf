package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
)

// seeing describes how a server finds out about changes that others make in its tree.
type seeing struct {
	name  string
	env   []string
	start func(*exec.Cmd) error // nil means a normal start
}

var waysToSee = []seeing{
	{name: "events"},
	{name: "poll", env: []string{"WATCH=poll:1s"}},
	{name: "few watches", start: withWatches(20)},
}

// withWatches starts a program in its own user namespace, where it may use up to n inotify watches.
func withWatches(n int) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		limited := fmt.Sprintf(`echo %d >/proc/sys/user/max_inotify_watches && exec "$0" "$@"`, n)
		cmd.Args = append([]string{"sh", "-c", limited, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		return cmd.Start()
	}
}

// startSeeing starts a server that finds out about changes in the given way.
func startSeeing(t *testing.T, see seeing) *daemon {
	if see.start != nil {
		if err := withWatches(20)(exec.Command("/bin/true")); err != nil {
			notHere(t, "few watches, without a user namespace: %v", err)
		}
	}
	d := newDaemon(t, filepath.Join(t.TempDir(), "store"))
	d.env, d.launch = see.env, see.start
	d.start()
	return d
}

// TestFaultForeign checks the server under load while many foreign files are added to the tree, copied and removed. The
// server keeps responding, its memory stays bounded, and the index equals a rebuilt one.
func TestFaultForeign(t *testing.T) {
	longer(t)
	t.Parallel()
	d := startSeeing(t, waysToSee[0])
	l := newLoad(t, d)
	l.pace = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	clients := l.clients(ctx, 2)
	slowest := l.probe(ctx)
	tree, beside := d.tree(), filepath.Join(filepath.Dir(d.store), "vault")
	files := extent(5_000, 50_000)
	plantForeign(t, beside, files)
	quiet := func(after string) {
		if _, err := d.verb("compare", "project", faultKey); err != nil {
			t.Errorf("after %s: %v", after, err)
		}
	}
	began := time.Now()
	for i, at := range []string{"vault", "messages/vault"} { // foreign files outside messages, then inside
		if err := os.Rename(filepath.Join(beside, fmt.Sprint(i)), filepath.Join(tree, at)); err != nil {
			t.Fatal(err)
		}
	}
	quiet("they came at once")
	came := time.Since(began)
	copied := exec.Command("cp", "-r", filepath.Join(tree, "messages/vault"), filepath.Join(tree, "messages/again"))
	if out, err := copied.CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
	quiet("they were copied")
	for _, at := range []string{"vault", "messages/vault", "messages/again"} {
		if err := os.RemoveAll(filepath.Join(tree, at)); err != nil {
			t.Fatal(err)
		}
	}
	quiet("they were removed")
	cancel()
	clients.Wait()
	l.level()
	peak, longest := peakMemory(t, d.cmd.Process.Pid), slowest()
	if peak > maxResident {
		t.Errorf("VmHWM %d MB", peak>>20)
	}
	waits.Limit(t, "the slowest answer", longest, 10*time.Second*slower)
	d.check(l.ledger)
	t.Logf("%d foreign files, known after %s; VmHWM %d MB, the slowest answer took %s; %s", files, came.Round(time.Millisecond),
		peak>>20, longest.Round(time.Millisecond), l)
}

// TestFaultMoved checks that no message is lost if a user renames folders of agents and of days, and moves them back,
// while agents send. The server gets file events, gets none, or has too few inotify watches. At the end, every
// message that was reported as sent is complete, and the index equals a rebuilt one.
func TestFaultMoved(t *testing.T) {
	longer(t)
	for _, see := range waysToSee {
		t.Run(see.name, func(t *testing.T) {
			t.Parallel()
			d := startSeeing(t, see)
			l := newLoad(t, d)
			l.pace = 5 * time.Millisecond
			l.refusal = func(err error) { // the agent's folder, or a folder of its mail, currently has a different name
				if strings.Contains(err.Error(), "internal error") {
					t.Error(err)
				}
			}
			l.meddled = func(string) bool { return true }
			ctx, cancel := context.WithCancel(t.Context())
			clients := l.clients(ctx, 3)
			moves := 0
			for deadline := time.Now().Add(time.Duration(extent(2, 60)) * time.Second); time.Now().Before(deadline); moves++ {
				from := l.movable(moves)
				if os.Rename(from, from+"x") != nil {
					continue
				}
				if err := l.send(l.draft("Ann")); err != nil { // the folder currently has its other name
					t.Fatal(err)
				}
				moveBack(t, from+"x", from)
			}
			cancel()
			clients.Wait()
			if see.start != nil && !strings.Contains(tail(d.logFile(), 1<<20), "inotify watches left") {
				t.Error("the server had enough watches")
			}
			l.level()
			for _, names := range [][2]string{{"Bob", "Rob"}, {"Rob", "Bob"}} { // rename a whole folder while no agent is sending
				to := filepath.Join(d.tree(), "agents", names[1])
				if err := os.Rename(filepath.Join(d.tree(), "agents", names[0]), to); err != nil {
					there, _ := exec.Command("find", to, "-printf", "%T+ %p\n").CombinedOutput()
					t.Fatalf("at %s: %v; the folder contains\n%s", time.Now().UTC(), err, there)
				}
				l.level()
			}
			d.launch = nil
			d.stop()
			problems := append(storetest.CheckEdited(t.Context(), d.store), storetest.CheckAnswered(d.store, l.ledger.Sends(), nil, "")...)
			for _, p := range problems {
				t.Error(p)
			}
			t.Logf("%s: %d folders renamed and moved back; %s", see.name, moves, l)
		})
	}
}

// level waits until the server has found and committed the changes made by others. It does not ask the server to
// compare the tree with the index.
func (l *load) level() {
	l.d.t.Helper()
	until(l.d.t, "the index to equal a rebuilt one", time.Minute*slower, func() bool {
		return len(storetest.CheckIndex(l.d.t.Context(), l.d.store)) == 0
	})
	if _, err := l.d.verb("flush", "project", faultKey); err != nil {
		l.d.t.Errorf("flush: %v", err)
	}
}

// movable returns one of the folders that are renamed: an agent's, or a day's.
func (l *load) movable(n int) string {
	day := time.Now().UTC().Format("2006/01/02")
	all := []string{"agents/Bob", "agents/Cid/inbox/" + day, "messages/" + day, "agents/Dora/outbox/" + day[:4], "agents/Eve/inbox"}
	return filepath.Join(l.d.tree(), filepath.FromSlash(all[n%len(all)]))
}

// moveBack moves each file in the folder from back to the same relative path in the folder to, until no file is left.
// The destination folders may exist again by then. If the server was about to write a file when its folder was moved
// away, the file may appear in the moved folder later, so moveBack repeats the move.
func moveBack(t *testing.T, from, to string) {
	t.Helper()
	until(t, "a folder to be moved back", time.Minute, func() bool {
		var folders []string
		err := filepath.WalkDir(from, func(p string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir():
				folders = append(folders, p)
				return nil
			}
			at := filepath.Join(to, strings.TrimPrefix(p, from))
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				return err
			}
			return os.Rename(p, at)
		})
		for _, p := range slices.Backward(folders) {
			_ = os.Remove(p) // removes the folder if it is empty
		}
		return errors.Is(err, fs.ErrNotExist)
	})
}

// probe reads inboxes until ctx ends. The returned function waits until probe has finished, and returns how long the
// slowest response took.
func (l *load) probe(ctx context.Context) (slowest func() time.Duration) {
	var all sync.WaitGroup
	var longest time.Duration
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			began := time.Now()
			if err := l.check(l.agents[i%len(l.agents)]); err != nil {
				l.d.t.Errorf("no answer: %v", err)
				return
			}
			longest = max(longest, time.Since(began))
			waits.Pace(10 * time.Millisecond)
		}
	})
	return func() time.Duration { all.Wait(); return longest }
}

// plantForeign creates n files in the folders 0 and 1 below dir, with 100 files in each subfolder.
func plantForeign(t *testing.T, dir string, n int) {
	t.Helper()
	for i := range n {
		at := filepath.Join(dir, fmt.Sprint(i%2), fmt.Sprint(i/200))
		if i%200 < 2 {
			if err := os.MkdirAll(at, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(at, fmt.Sprintf("%d.md", i)), fmt.Appendf(nil, "# Note %d\n\nNo mail.\n", i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
