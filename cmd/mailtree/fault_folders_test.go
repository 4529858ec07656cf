package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"mailtree/fixtures/inmemory"
	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/guard"
	"mailtree/mcp/mail"
)

// TestFaultFolders checks claims, mail and the guard in several folders of one project. Three agents work in a main
// working tree, in a worktree nested in it, and in another clone, while the server is killed at random. No file has
// two holders, the guard in each folder stops every agent except the holder, and every message arrives once.
func TestFaultFolders(t *testing.T) {
	t.Parallel()
	rounds := extent(8, 100)
	dir, err := filepath.EvalSymlinks(inmemory.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-c", "user.name=p", "-c", "user.email=p@x"}, args...)...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "--bare", "-b", "main", "hub.git")
	git("clone", "-q", "hub.git", "main")
	git("-C", "main", "commit", "-q", "--allow-empty", "-m", "first")
	git("-C", "main", "push", "-q", "origin", "HEAD:main")
	git("-C", "main", "worktree", "add", "-q", ".claude/worktrees/side")
	git("clone", "-q", "-b", "main", "hub.git", "clone")

	d := newDaemon(t, filepath.Join(dir, "store"))
	d.start()
	var workers []*worker
	for name, folder := range map[string]string{"Ann": "main", "Bob": "main/.claude/worktrees/side", "Cat": "clone"} {
		w := &worker{daemon: d, name: name, folder: filepath.Join(dir, folder)}
		workers = append(workers, w)
	}
	slices.SortFunc(workers, func(a, b *worker) int { return len(a.folder) - len(b.folder) })
	if workers[0].name == "Cat" { // the project must belong to the main working tree
		workers[0], workers[1] = workers[1], workers[0]
	}
	for _, w := range workers {
		w.must("create_agent", map[string]any{"project_key": w.folder, "program": "x", "model": "y", "task_description": "t", "name_hint": w.name}, nil)
	}

	kills := 0
	for n := range rounds {
		file := fmt.Sprintf("app/file%d.go", n%5)
		var working sync.WaitGroup
		for _, w := range workers {
			working.Go(func() { w.answered = w.claim(file) == nil })
		}
		kill := n%3 == 1
		if kill {
			kills++
			waits.Pace(rand.N(10 * time.Millisecond))
			d.kill()
		}
		working.Wait()
		if kill {
			d.start()
		}
		for _, w := range workers {
			if !w.answered {
				until(t, "the claim is answered", time.Minute, func() bool { return w.claim(file) == nil })
			}
		}
		var holders []string
		for _, w := range workers {
			if w.holds {
				holders = append(holders, w.name)
			}
		}
		if len(holders) != 1 {
			t.Fatalf("round %d: %s is held by %v", n, file, holders)
		}
		for _, w := range workers {
			if code := w.guard(file); (code == guard.Pass) != w.holds || code == guard.Trouble {
				t.Fatalf("round %d: the guard returns %d for %s in %s, and %v holds it", n, code, w.name, w.folder, holders)
			}
		}
		for i, w := range workers {
			if !w.holds {
				continue
			}
			if err := os.MkdirAll(filepath.Join(w.folder, "app"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(w.folder, file), fmt.Appendf(nil, "%d\n", n), 0o600); err != nil {
				t.Fatal(err)
			}
			git("-C", w.folder, "add", file)
			git("-C", w.folder, "commit", "-q", "-m", fmt.Sprint(n))
			to := workers[(i+1)%len(workers)]
			w.must("send_message", map[string]any{"project_key": w.folder, "from_agent": w.name, "to": []string{to.name},
				"subject": fmt.Sprint("round ", n), "body_md": "done", "key": fmt.Sprint(n)}, nil)
			w.must("release_claims", map[string]any{"project_key": w.folder, "agent_name": w.name, "paths": []string{filepath.Join(w.folder, file)}}, nil)
		}
	}
	var got []string
	for _, w := range workers {
		var box struct {
			Messages []struct {
				Subject string `json:"subject"`
			} `json:"messages"`
		}
		w.must("check_my_messages", map[string]any{"project_key": w.folder, "agent_name": w.name, "limit": 100}, &box)
		for _, m := range box.Messages {
			got = append(got, m.Subject)
		}
	}
	slices.Sort(got)
	if len(got) != rounds || len(slices.Compact(got)) != rounds {
		t.Errorf("%d messages arrived, want each of %d once: %v", len(got), rounds, got)
	}
	projects, err := os.ReadDir(filepath.Join(d.store, "projects"))
	if err != nil || len(projects) != 1 {
		t.Errorf("%d projects, want 1: %v", len(projects), err)
	}
	d.stop()
	for _, p := range storetest.Check(t.Context(), d.store, nil) {
		t.Error(p)
	}
	t.Logf("%d rounds in three folders, %d kills", rounds, kills)
}

// worker is an agent in TestFaultFolders that works in its own folder.
type worker struct {
	*daemon
	name, folder string
	holds        bool // the worker holds the round's file
	answered     bool // the first attempt to claim the file was answered
}

// must makes a call that must succeed.
func (w *worker) must(tool string, args, result any) {
	w.t.Helper()
	if err := w.call(tool, args, result); err != nil {
		w.t.Fatalf("%s: %v", tool, err)
	}
}

// claim claims a file by its absolute path in the worker's folder, and records whether the worker holds it.
func (w *worker) claim(file string) error {
	var res mail.Claimed
	err := w.call("claim_paths", map[string]any{
		"project_key": w.folder, "agent_name": w.name, "paths": []string{filepath.Join(w.folder, file)},
	}, &res)
	w.holds = err == nil && len(res.Granted) == 1 && len(res.Conflicts) == 0
	return err
}

// guard returns the exit status of the guard's check before a commit of a file in the worker's folder.
func (w *worker) guard(file string) int {
	return guard.Check(w.t.Context(), guard.Question{
		Store: w.store,
		Dir:   w.folder,
		Paths: []string{file},
		Env:   append(os.Environ(), "AGENT_NAME="+w.name),
	}, io.Discard).Code
}
