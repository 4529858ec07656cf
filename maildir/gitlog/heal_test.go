package gitlog

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// writeBack moves an index into place in the way that Git does. It returns an error if another program holds the
// lock.
func (t *repoTree) writeBack(old []byte) error {
	f, err := os.OpenFile(t.path(".git/index.lock"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(old)
	t.check(err)
	t.check(f.Close())
	return os.Rename(t.path(".git/index.lock"), t.path(".git/index"))
}

// numbered makes the i-th commit. Commits with an odd number are edits. Each commit writes the profile and removes the
// mark that the previous commit added.
func (t *repoTree) numbered(i int) {
	t.Helper()
	mark, before := fmt.Sprint("marks/", i), fmt.Sprint("marks/", i-1)
	end := strings.Repeat("!", i) + "\n" // an old index would hide a change of the same size in the same second
	os.Remove(t.path(before))
	if i%2 == 1 {
		for _, p := range []string{fmt.Sprint("notes/", i), "profile", mark} {
			t.write(p, fmt.Sprint("edit ", i, end))
		}
		t.log.RecordEdits([]string{fmt.Sprint("notes/", i), "profile", mark, before})
	} else {
		id := fmt.Sprint("m", i)
		for _, p := range []string{"messages/" + id, "agents/B/inbox/" + id, "profile", mark} {
			t.write(p, "text of "+id+end)
		}
		t.record(op("send", "A", id, "messages/"+id, "agents/B/inbox/"+id, "profile", mark, before))
	}
	t.flush()
}

// standing checks that HEAD contains the changes of the first n numbered commits.
func (t *repoTree) standing(n int) {
	t.Helper()
	t.sound()
	want, ids := []string{".gitignore"}, []string{}
	for i := 0; i < n; i += 2 {
		ids = append(ids, fmt.Sprint("m", i))
		want = append(want, fmt.Sprint("agents/B/inbox/m", i))
	}
	want = append(want, fmt.Sprint("marks/", n-1))
	for i := 0; i < n; i += 2 {
		want = append(want, fmt.Sprint("messages/m", i))
	}
	for i := 1; i < n; i += 2 {
		want = append(want, fmt.Sprint("notes/", i))
	}
	t.equal("files", t.git("ls-tree", "-r", "--name-only", "HEAD"), strings.Join(append(want, "profile"), "\n"))
	t.equal("ids", strings.Join(t.ids(), " "), strings.Join(ids, " "))
	t.equal("profile", t.git("show", "HEAD:profile"), strings.TrimSpace(string(t.file("profile"))))
}

var byPerson = []string{"", "commit -qm by-hand", "commit -qam by-hand", "commit -qm by-hand -- profile", "status"}

// TestOldIndexOverSeveralCommits checks that no commit is undone if a slow git command writes back an index from
// before several of these commits, even if a user then commits that index.
func TestOldIndexOverSeveralCommits(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 4} {
		for from := 1; from < n; from++ {
			for _, command := range byPerson {
				t.Run(fmt.Sprintf("%d commits, from before %d, %s", n, from, command), func(t *testing.T) {
					t.Parallel()
					tr := newTree(t, Config{External: true})
					var old []byte
					for i := range n {
						if i == from {
							old = tr.file(".git/index")
						}
						tr.numbered(i)
					}
					tr.check(tr.writeBack(old))
					if tr.git("status", "--porcelain") == "" {
						t.Fatal("the old index had no effect")
					}
					if command != "" {
						tr.tryGit(strings.Fields(command)...)
					}
					tr.flush()
					tr.standing(n)
				})
			}
		}
	}
}

// TestOldIndexAtEveryStep is like TestOldIndexOverSeveralCommits, but the git command takes its lock at each possible
// step of the last commit.
func TestOldIndexAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, step := range append([]string{"built", "objects"}, steps...) {
		for _, command := range byPerson {
			t.Run(step+", "+command, func(t *testing.T) {
				t.Parallel()
				tr := newTree(t, Config{External: true})
				if step == "reserved" {
					tr.log.optimistic = 0
				}
				tr.numbered(0)
				old := tr.file(".git/index")
				tr.numbered(1)
				reached := false
				tr.log.step = func(s string) {
					if s != step || reached {
						return
					}
					reached = true
					for i := range tr.log.mem.own { // make all commits look recent, even if the test is slow
						tr.log.mem.own[i].at = time.Now()
					}
					if tr.writeBack(old) == nil && command != "" {
						tr.tryGit(strings.Fields(command)...)
					}
				}
				tr.numbered(2)
				if !reached {
					t.Fatal("the step was not reached")
				}
				tr.flush()
				tr.standing(3)
			})
		}
	}
}

// TestOldIndexCommittedLate checks that no commit is undone if a user's commit reads the old index, but finishes only
// after the index was repaired. In that case, only the branch has to be repaired.
func TestOldIndexCommittedLate(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.numbered(0)
	old := tr.file(".git/index")
	tree := tr.git("rev-parse", "HEAD^{tree}")
	tr.numbered(1)
	tr.numbered(2)
	tr.check(tr.writeBack(old))
	tr.flush()
	tr.sound()
	tr.git("update-ref", "HEAD", tr.git("commit-tree", "-p", "HEAD", "-m", "by hand", tree))
	tr.run()
	tr.until("put back", func() bool { return tr.git("status", "--porcelain") == "" })
	tr.flush()
	tr.standing(3)
}

// TestOldIndexAtTheStart checks that a starting server restores the files that were dropped by a user's commit of an
// old index while no server was running, even if more commits followed.
func TestOldIndexAtTheStart(t *testing.T) {
	t.Parallel()
	for _, since := range []int{0, 2} {
		for _, command := range []string{"commit -qm by-hand", "commit -qam by-hand"} {
			t.Run(fmt.Sprintf("%d commits since, %s", since, command), func(t *testing.T) {
				t.Parallel()
				tr := newTree(t, Config{External: true})
				unwatched := func(from, to int) {
					for i := from; i < to; i++ {
						tr.log.mem.own = nil
						tr.numbered(i)
					}
					tr.log.mem.own = nil
				}
				unwatched(0, 2)
				old := tr.file(".git/index")
				unwatched(2, 4)
				tr.check(tr.writeBack(old))
				tr.git(strings.Fields(command)...)
				unwatched(4, 4+since)
				if tr.git("status", "--porcelain") == "" {
					t.Fatal("the old index had no effect")
				}
				tr.reopen(Config{External: true})
				tr.caughtUp()
				tr.standing(4 + since)
			})
		}
	}
}

// TestUnstagedByHandStaysSo checks that files that a user unstages stay unstaged after the next commit and after a
// restart.
func TestUnstagedByHandStaysSo(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(tr *repoTree){
		"a message":         func(tr *repoTree) { tr.git("rm", "-q", "--cached", "messages/m2") },
		"an operation":      func(tr *repoTree) { tr.git("rm", "-q", "--cached", "messages/m2", "agents/B/inbox/m2") },
		"edits":             func(tr *repoTree) { tr.git("rm", "-q", "--cached", "notes/1", "notes/3") },
		"a folder":          func(tr *repoTree) { tr.git("rm", "-rq", "--cached", "messages") },
		"everything":        func(tr *repoTree) { tr.git("rm", "-rq", "--cached", ".") },
		"with its files":    func(tr *repoTree) { tr.git("rm", "-q", "messages/m2", "agents/B/inbox/m2", "notes/3") },
		"files that differ": func(tr *repoTree) { tr.git("rm", "-q", "--cached", "messages/m2"); tr.write("messages/m2", "by hand") },
		"an old profile":    func(tr *repoTree) { tr.git("checkout", "-q", "HEAD~2", "--", "profile") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, Config{})
			tr.log.cfg.External = true
			for i := range 5 {
				tr.numbered(i)
			}
			act(tr)
			for i := range tr.log.mem.own { // make all commits look old
				tr.log.mem.own[i].at = time.Now().Add(-keepTime)
			}
			tr.log.settle(tr.log.mem.level, healTime)
			status := tr.git("diff", "--cached", "--name-status")
			tr.log.cfg.External = false
			tr.send("m9", "messages/m9")
			tr.flush()
			tr.equal("staged", tr.git("diff", "--cached", "--name-status"), status)
			tr.reopen(Config{})
			tr.flush()
			tr.equal("staged after a restart", tr.git("diff", "--cached", "--name-status"), status)
		})
	}
}

// TestPartUnstagedAtOnce checks that if a user unstages part of the last commit immediately, this part also stays
// unstaged.
func TestPartUnstagedAtOnce(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.numbered(0)
	tr.numbered(1)
	tr.numbered(2)
	tr.git("rm", "-q", "--cached", "messages/m2")
	tr.flush()
	tr.equal("status", tr.git("status", "--porcelain"), "D  messages/m2\n?? messages/m2")
}

// TestOwnIsBounded checks that each commit drops the earlier commits that git commands can no longer undo, even if
// commits are made in quick succession.
func TestOwnIsBounded(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.own = []ownCommit{{at: time.Now().Add(-keepTime)}, {at: time.Now()}}
	m.keepOwn(nil)
	(&Log{mem: m}).settle(state{}, healTime)
	if len(m.own) != 2 {
		t.Errorf("%d commits", len(m.own))
	}
}

// TestSettled checks that long after the last commit, no commit is kept in memory, and Run is not woken.
func TestSettled(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.run()
	tr.send("m1", "m1")
	tr.until("settled", func() (yes bool) {
		tr.check(tr.log.exclusive(context.Background(), func() error {
			tr.log.mu.Lock()
			defer tr.log.mu.Unlock()
			yes = len(tr.log.records) == 0 && tr.log.look.IsZero() && len(tr.log.mem.own) == 0
			return nil
		}))
		return yes
	})
	tr.sound()
}
