package gitlog

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"mailtree/maildir/writer"
)

// TestUnfinishedCommands checks, for each kind of git command that a user can leave unfinished, that nothing is
// committed until the command is finished or aborted.
func TestUnfinishedCommands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begin []string
		part  string
		ends  [][]string
	}{
		"merge":       {[]string{"merge", "side"}, "a merge", [][]string{{"merge", "--abort"}, {"commit", "-qm", "merged"}}},
		"rebase":      {[]string{"rebase", "side"}, "", [][]string{{"rebase", "--abort"}, {"rebase", "--continue"}}},
		"rebase, am":  {[]string{"rebase", "--apply", "side"}, "", [][]string{{"rebase", "--abort"}, {"rebase", "--continue"}}},
		"cherry-pick": {[]string{"cherry-pick", "side"}, "a cherry-pick", [][]string{{"cherry-pick", "--abort"}, {"cherry-pick", "--continue"}}},
		"series":      {[]string{"cherry-pick", "side~", "side"}, "a cherry-pick", [][]string{{"cherry-pick", "--abort"}, {"cherry-pick", "--continue"}}},
		"revert":      {[]string{"revert", "HEAD~"}, "a revert", [][]string{{"revert", "--abort"}, {"revert", "--continue"}}},
	} {
		for i, end := range c.ends {
			t.Run(fmt.Sprint(name, " ", end), func(t *testing.T) {
				t.Parallel()
				tr := newTree(t, Config{})
				tr.git("config", "core.editor", "true")
				commit := func(text string) {
					tr.write("notes", text)
					tr.git("add", "notes")
					tr.git("commit", "-qm", text)
				}
				commit("base")
				tr.git("checkout", "-q", "-b", "side")
				commit("side")
				commit("side 2")
				tr.git("checkout", "-q", "main")
				commit("main")
				commit("main 2")
				if _, err := tr.tryGit(c.begin...); err == nil {
					t.Fatal("there is no conflict")
				}
				head := tr.git("rev-parse", "main")
				tr.send("m1", "messages/m1")
				if err := tr.log.Flush(t.Context()); err == nil {
					t.Error("committed while the command was unfinished")
				}
				tr.state("waiting", c.part)
				tr.equal("main", tr.git("rev-parse", "main"), head)
				if i == 1 {
					for round := range 5 {
						tr.write("notes", fmt.Sprint("resolved ", round))
						tr.git("add", "notes")
						if _, err := tr.tryGit(end...); err == nil {
							break
						}
					}
				} else {
					tr.git(end...)
				}
				tr.goesOn()
				tr.equal("ids", strings.Join(tr.ids(), " "), "m1")
			})
		}
	}
}

// TestRebaseOfAMovedBranch checks the suggestion of State if a rebase fails because a commit was added to the branch
// after the rebase had read the branch. State must not suggest aborting the rebase, because that would remove the
// commit from the branch.
func TestRebaseOfAMovedBranch(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.git("checkout", "-q", "-b", "side")
	tr.git("commit", "-q", "--allow-empty", "-m", "side")
	tr.git("checkout", "-q", "main")
	tr.write("notes", "main")
	tr.git("add", "notes")
	tr.git("commit", "-qm", "main")
	tr.write(".git/hooks/pre-rebase", "#!/bin/sh\ngit commit -q --allow-empty -m meanwhile\n")
	tr.check(os.Chmod(tr.path(".git/hooks/pre-rebase"), 0o700))
	if _, err := tr.tryGit("rebase", "side"); err == nil {
		t.Fatal("the branch did not move")
	}
	tr.send("m1", "messages/m1")
	_ = tr.log.Flush(t.Context())
	tr.state("waiting", "git rebase --quit and git checkout main,")
	tr.git("rebase", "--quit")
	tr.git("checkout", "-q", "main")
	tr.goesOn()
	tr.equal("log", tr.git("log", "--format=%s", "--grep=meanwhile"), "meanwhile")
}

// TestAPersonAtEveryStep checks that no mail is deleted if a user commits everything between two of our steps. The user
// commits as soon as Git allows it.
func TestAPersonAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"commit", "commit -a", "commit --amend"} {
		for _, step := range append([]string{"built", "objects"}, steps...) {
			t.Run(command+", "+step, func(t *testing.T) {
				t.Parallel()
				tr := newTree(t, Config{External: true})
				if step == "reserved" {
					tr.log.optimistic = 0
				}
				tr.send("m0", "messages/m0")
				tr.flush()
				made := 0
				act := func() {
					tr.write("notes", fmt.Sprint("by hand ", made))
					if _, err := tr.tryGit("add", "notes"); err != nil {
						return
					}
					if _, err := tr.tryGit(append(strings.Fields(command), "-qm", "by hand")...); err == nil {
						made++
					}
				}
				reached := false
				tr.log.step = func(s string) {
					if s == step && !reached {
						reached = true
						act()
					}
				}
				for i := range 3 {
					tr.send(fmt.Sprint("m", i+1), fmt.Sprint("messages/m", i+1))
					tr.flush()
					reached = reached && i > 0
					act()
				}
				tr.flush()
				tr.git("add", "-A")
				tr.tryGit("commit", "-qm", "the rest")
				tr.sound()
				tr.equal("deleted", tr.git("log", "--diff-filter=D", "--name-only", "--format=", "--", "messages"), "")
				tr.equal("files", tr.git("ls-files", "messages"), "messages/m0\nmessages/m1\nmessages/m2\nmessages/m3")
				if command != "commit --amend" { // --amend replaces a commit on purpose
					tr.equal("ids", strings.Join(tr.ids(), " "), "m0 m1 m2 m3")
					tr.equal("by hand", fmt.Sprint(strings.Count(tr.git("log", "--format=%s"), "by hand")), fmt.Sprint(made))
				}
			})
		}
	}
}

// TestStaleLock checks that a lock left behind by another program is reported before any operation waits for it, and
// is never removed.
func TestStaleLock(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"index.lock", "refs/heads/main.lock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, Config{})
			tr.write(".git/"+name, "")
			tr.state("committing", "")
			old := time.Now().Add(-2 * staleLock)
			tr.check(os.Chtimes(tr.path(".git/"+name), old, old))
			tr.state("waiting", ".git/"+name+" has existed since")
			if mode, reason := Look(tr.dir); mode != "waiting" || !strings.Contains(reason, "remove that file") {
				t.Errorf("Look: %s %q", mode, reason)
			}
			tr.reopen(Config{})
			tr.send("m1", "m1")
			if err := tr.log.Flush(t.Context()); err == nil {
				t.Error("committed past the lock")
			}
			tr.check(os.Remove(tr.path(".git/" + name))) // fails if the lock no longer exists
			tr.goesOn()
		})
	}
}

// TestDefaultTimes checks that operations are collected for a quarter of a second, and that edits are committed two
// seconds after the last change, or after 30 seconds at the latest.
func TestDefaultTimes(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	l, err := Open(Config{Dir: tr.dir, External: true})
	tr.check(err)
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	for _, c := range []struct {
		edits []time.Duration
		ops   []time.Duration
		want  time.Duration
	}{
		{ops: []time.Duration{0, 200 * time.Millisecond}, want: 250 * time.Millisecond},
		{edits: []time.Duration{0}, want: 2 * time.Second},
		{edits: []time.Duration{0, time.Second, 2 * time.Second}, want: 4 * time.Second},
		{edits: []time.Duration{0, 29 * time.Second}, want: 30 * time.Second},
		{edits: []time.Duration{0}, ops: []time.Duration{time.Second}, want: 1250 * time.Millisecond},
	} {
		q := queue{edits: map[string]struct{}{}}
		for _, d := range c.edits {
			q.edited([]string{"x"}, at(d))
		}
		for _, d := range c.ops {
			q.record([]writer.Op{op("send", "A", "m", "m")}, nil, hash{}, at(d))
		}
		if due, ok := q.due(l.cfg); !ok || !due.Equal(at(c.want)) {
			t.Errorf("%+v: due after %v", c, due.Sub(start))
		}
	}
}
