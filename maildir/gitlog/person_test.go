package gitlog

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mailtree/fixtures/inmemory"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

func TestStagedChangesSurvive(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2", "3"} {
		t.Run("index version "+version, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, Config{})
			tr.git("update-index", "--index-version", version)
			tr.send("m0", "notes/kept", "notes/gone", "zz", "messages/01/m0", "assumed", "skipped")
			tr.flush()
			tr.git("update-index", "--assume-unchanged", "assumed")
			tr.write("notes/kept", "staged")
			tr.write("notes/new", "staged")
			tr.write("notes/later", "intended")
			tr.git("add", "notes/kept", "notes/new")
			tr.git("add", "-N", "notes/later")
			tr.git("rm", "-q", "notes/gone")
			tr.git("rm", "-q", "--cached", "zz")
			if version != "2" {
				tr.git("update-index", "--skip-worktree", "skipped")
			}
			tr.write("notes/new", "changed after staging")
			flags := tr.git("ls-files", "-v", "assumed", "skipped")
			tr.send("m1", "messages/01/m1", "messages/02/m1", "a/m1")
			tr.flush()
			tr.equal("files of our commit", tr.git("show", "--name-only", "--format="), "a/m1\nmessages/01/m1\nmessages/02/m1")
			tr.equal("status", tr.git("status", "--porcelain"), "D  notes/gone\nM  notes/kept\n A notes/later\nAM notes/new\nD  zz\n?? zz")
			tr.equal("flags", tr.git("ls-files", "-v", "assumed", "skipped"), flags)
			tr.equal("staged text", tr.git("show", ":notes/new"), "staged")
			tr.git("commit", "-q", "-m", "by hand")
			tr.equal("user's commit", tr.git("show", "--name-status", "--format="), "D\tnotes/gone\nM\tnotes/kept\nA\tnotes/new\nD\tzz")
			tr.git("add", "-A")
			tr.git("commit", "-q", "-m", "the rest")
			tr.equal("ids", strings.Join(tr.ids(), " "), "m0 m1")
			tr.sound()
		})
	}
}

func TestOurPathWins(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.write("m1", "staged by a person")
	tr.git("add", "m1")
	tr.send("m1", "m1")
	tr.flush()
	tr.equal("content", tr.git("show", "HEAD:m1"), "text of m1")
	tr.sound()
}

// TestRacyEntries checks that Git notices a change to a file even if it happens in the same second in which the index
// was last written.
func TestRacyEntries(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	for i := range 20 {
		file := fmt.Sprintf("notes/%d", i)
		tr.write(file, "one")
		tr.git("add", file)
		tr.write(file, "two") // the same size, the same second
		tr.send(fmt.Sprintf("m%d", i), fmt.Sprintf("messages/m%d", i))
		tr.flush()
		tr.write(fmt.Sprintf("messages/m%d", i), fmt.Sprintf("TEXT of m%d\n", i)) // the file changes very soon after the commit
	}
	tr.send("last", "last")
	tr.flush()
	out := tr.git("status", "--porcelain")
	if n := strings.Count(out, "AM notes/"); n != 20 {
		t.Errorf("%d changed files were detected, want 20:\n%s", n, out)
	}
	if n := strings.Count(out, " M messages/"); n != 20 {
		t.Errorf("%d changed messages were detected, want 20:\n%s", n, out)
	}
}

// TestRacyEntryIsSmudged is like TestRacyEntries, but with fixed times. If an entry's time is in the same second as the
// index, Git must read the content of the file, and must trust the entry if the content is unchanged. Otherwise,
// commands that do not read the content themselves, such as git revert, would refuse to change the file.
func TestRacyEntryIsSmudged(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	for _, f := range []string{"other", "touched", "old", "gone", "racy"} {
		tr.write(f, "text")
	}
	tr.check(os.Symlink("text", tr.path("link")))
	tr.check(os.Chtimes(tr.path("old"), time.Now(), time.Now().Add(-time.Hour)))
	second := time.Now().Truncate(time.Second).Add(-10 * time.Second)
	for _, f := range []string{"racy", "other", "touched"} {
		tr.check(os.Chtimes(tr.path(f), second, second))
	}
	tr.git("add", "other", "touched", "old", "gone", "link")
	tr.git("commit", "-qm", "by hand")
	tr.git("add", "racy")
	tr.git("commit", "-qm", "racy")
	for f, text := range map[string]string{"other": "TEXT", "touched": "text"} { // these files change within one second
		tr.write(f, text)
		at := second.Add(time.Millisecond)
		tr.check(os.Chtimes(tr.path(f), at, at))
	}
	tr.check(os.Chtimes(tr.path(".git/index"), second, second))
	tr.check(os.Remove(tr.path("gone")))
	tr.record(op("unread", "A", "m1", "gone"))
	tr.flush()
	for f, want := range map[string]string{"racy": "size: 4\t", "touched": "size: 4\t", "link": "size: 4\t", "old": "size: 4\t"} {
		if out := tr.git("ls-files", "--debug", f); !strings.Contains(out, want) {
			t.Errorf("%s: want %q:\n%s", f, want, out)
		}
	}
	tr.git("read-tree", "-n", "-m", "-u", "HEAD", "HEAD~2") // removes the file named racy if it is unchanged
	// Either Git has smudged the entry of the file named other, or the entry's ctime differs.
	tr.equal("status", tr.git("status", "--porcelain"), " M other")
}

func TestBetweenTwoCommits(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	person := []func(i int){
		func(i int) {
			tr.write("notes", fmt.Sprint(i))
			tr.git("add", "notes")
			tr.git("commit", "-qm", "n", "--allow-empty")
		},
		func(i int) { tr.write("notes", fmt.Sprint(i)); tr.git("commit", "-qam", "all") },
		func(i int) { tr.git("pack-refs", "--all") },
		func(i int) { tr.git("gc", "-q") },
		func(i int) { tr.git("repack", "-adq") },
		func(i int) {
			tr.git("pack-refs", "--all", "--prune")
			tr.git("reflog", "expire", "--expire=now", "--all")
		},
		func(i int) { tr.git("checkout", "-q", "-b", fmt.Sprint("b", i)); tr.git("checkout", "-q", "main") },
		func(i int) { tr.write("notes", "stash"); tr.git("stash", "-q"); tr.git("stash", "drop", "-q") },
		func(i int) { tr.git("revert", "--no-edit", "HEAD") },
		func(i int) { tr.check(os.Remove(tr.path(".git/index"))) },
		func(i int) { tr.git("update-index", "--split-index"); tr.git("update-index", "--no-split-index") },
		func(i int) { tr.git("commit", "-q", "--amend", "-m", "amended") },
		func(i int) { tr.git("gc", "-q", "--prune=now") },
	}
	tr.write("notes", "start")
	tr.git("add", "notes")
	tr.git("commit", "-qm", "start")
	for i, act := range person {
		id := fmt.Sprintf("m%02d", i)
		tr.send(id, "messages/"+id, "agents/A/outbox/"+id)
		tr.flush()
		act(i)
	}
	tr.send("end", "messages/end")
	tr.flush()
	tr.git("add", "-A")
	if tr.git("status", "--porcelain") != "" {
		tr.git("commit", "-qm", "rest")
	}
	tr.sound()
}

var byHand = flag.Int("gitlog.byhand", 4, "minimum number of commits that a user makes alongside ours in TestBesideAPerson")

// TestBesideAPerson checks that the Log can commit operations while a user repeatedly commits other files and always
// has staged changes.
func TestBesideAPerson(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.run()
	var person sync.WaitGroup
	stop := make(chan struct{})
	var commits atomic.Int32
	person.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			file := fmt.Sprintf("notes/n%03d", i)
			tr.write(file, "by hand")
			steps := [][]string{{"add", file}, {"commit", "-qm", file}}
			if i%3 == 1 {
				steps[1] = []string{"commit", "-qam", file}
			}
			for _, s := range steps {
				tr.until("git "+s[0]+" gets its lock", func() bool {
					_, err := tr.tryGit(s...)
					if err != nil && !strings.Contains(err.Error(), "lock") {
						tr.Error(err)
						return true
					}
					return err == nil
				})
			}
			commits.Add(1)
		}
	})
	var sent sync.WaitGroup
	n := 0
	for i := 0; i < 12 || commits.Load() < int32(*byHand); i++ {
		n++
		id := fmt.Sprintf("m%03d", i)
		p := "messages/" + id
		tr.write(p, id)
		sent.Add(1)
		tr.log.Record([]writer.Op{op("send", "A", id, p)}, sent.Done)
		if i%2 == 0 || i >= 12 {
			sent.Wait()
		}
	}
	sent.Wait()
	close(stop)
	person.Wait()
	tr.flush()
	tr.sound()
	ids := tr.ids()
	if len(ids) != n || len(slices.Compact(slices.Sorted(slices.Values(ids)))) != n {
		t.Errorf("%d ids in the log, want %d once each: %v", len(ids), n, ids)
	}
	if k := len(strings.Fields(tr.git("log", "--author=Person", "--format=%H"))); k != int(commits.Load()) {
		t.Errorf("%d of the user's %d commits are left", k, commits.Load())
	}
	if k := len(strings.Fields(tr.git("ls-tree", "-r", "--name-only", "HEAD", "messages"))); k != n {
		t.Errorf("%d messages in HEAD, want %d", k, n)
	}
	if out := tr.git("log", "--diff-filter=D", "--name-only", "--format=", "--", "messages"); out != "" {
		t.Logf("dropped by a race within git and restored: %s", out)
	}
	t.Logf("%d commits by hand alongside %d operations in %s commits", commits.Load(), n, tr.git("rev-list", "--count", "--author=A", "HEAD"))
}

// refused sends a message and checks that the operation is not committed, and that State reports the given mode and
// reason.
func (t *repoTree) refused(id, mode, part string) {
	t.Helper()
	head := t.git("rev-parse", "main")
	t.send(id, "messages/"+id)
	if err := t.log.Flush(context.Background()); !errors.Is(err, refusal.ErrUnavailable) || !strings.Contains(err.Error(), part) {
		t.Errorf("Flush: %v, want %q", err, part)
	}
	t.state(mode, part)
	t.equal("main", t.git("rev-parse", "main"), head)
	if t.log.State().Pending == 0 {
		t.Error("nothing is pending")
	}
}

// goesOn commits the operations that could not be committed before.
func (t *repoTree) goesOn() {
	t.Helper()
	t.flush()
	t.state("committing", "")
	t.sound()
}

func TestSpecialStates(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	// There is a merge with a conflict.
	tr.write("notes", "base")
	tr.git("add", "notes")
	tr.git("commit", "-qm", "base")
	tr.git("checkout", "-q", "-b", "side")
	tr.write("notes", "side")
	tr.git("commit", "-qam", "side")
	tr.refused("m1", "detached", "git checkout main")
	tr.git("checkout", "-q", "main")
	tr.goesOn()
	tr.write("notes", "main")
	tr.git("commit", "-qam", "main")
	tr.tryGit("merge", "-q", "side")
	tr.refused("m2", "waiting", "merge")
	tr.write("notes", "both")
	tr.git("add", "notes")
	tr.refused("m3", "waiting", "merge")
	tr.git("commit", "-qm", "merged")
	tr.goesOn()
	// There are conflicts without a merge.
	tr.write("notes", "stashed")
	tr.git("stash", "-q")
	tr.write("notes", "other")
	tr.git("commit", "-qam", "other")
	tr.tryGit("stash", "pop", "-q")
	tr.refused("m4", "waiting", "conflicts")
	tr.git("checkout", "-q", "--theirs", "notes")
	tr.git("add", "notes")
	tr.git("commit", "-qm", "popped")
	tr.git("stash", "drop", "-q")
	tr.goesOn()
	// HEAD is detached.
	tr.git("checkout", "-q", "--detach")
	tr.refused("m5", "detached", "git checkout main")
	tr.git("checkout", "-q", "main")
	tr.goesOn()
	tr.equal("ids", strings.Join(tr.ids(), " "), "m1 m2 m3 m4 m5")
}

func TestUnusableRepository(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	// There is no repository.
	away := filepath.Join(inmemory.Dir(t), "away")
	tr.check(os.Rename(tr.path(".git"), away))
	tr.send("m6", "messages/m6")
	if err := tr.log.Flush(context.Background()); !errors.Is(err, refusal.ErrUnavailable) {
		t.Errorf("Flush: %v", err)
	}
	tr.state("off", ".git folder is missing")
	tr.check(os.Rename(away, tr.path(".git")))
	tr.goesOn()
	// The index is damaged.
	tr.write(".git/index", "DIRC nonsense nonsense nonsense nonsense")
	tr.send("m8", "messages/m8")
	if err := tr.log.Flush(context.Background()); err == nil {
		t.Error("Flush with a damaged index")
	}
	tr.state("waiting", "Remove .git/index")
	tr.check(os.Remove(tr.path(".git/index")))
	tr.goesOn()
	tr.equal("ids", strings.Join(tr.ids(), " "), "m6 m8")
}

func TestForeignLock(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.run()
	tr.write(".git/index.lock", "")
	tr.send("m1", "m1")
	tr.until("the wait is reported", func() bool { return tr.log.State().Mode == "waiting" })
	tr.state("waiting", "holding .git/index.lock")
	old := time.Now().Add(-time.Hour)
	tr.check(os.Chtimes(tr.path(".git/index.lock"), old, old))
	tr.until("the stale lock is reported", func() bool { return strings.Contains(tr.log.State().Reason, "remove that file") })
	tr.check(os.Remove(tr.path(".git/index.lock")))
	tr.until("committed", func() bool { return tr.log.State().Pending == 0 })
	tr.sound()
	tr.write(".git/refs/heads/main.lock", "")
	tr.send("m2", "m2")
	tr.until("the wait is reported", func() bool { return strings.Contains(tr.log.State().Reason, "main.lock") })
	tr.equal("index", tr.git("ls-files", "m2"), "")
	tr.check(os.Remove(tr.path(".git/refs/heads/main.lock")))
	tr.until("committed", func() bool { return tr.log.State().Pending == 0 })
	tr.sound()
}

func TestSha256(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.check(os.RemoveAll(tr.path(".git")))
	if _, err := tr.tryGit("init", "-q", "--object-format=sha256"); err != nil {
		t.Skip(err)
	}
	tr.check(Init(tr.dir))
	l, err := Open(Config{Dir: tr.dir})
	tr.check(err)
	tr.log = l
	tr.state("off", "SHA-256")
}

func TestForeignRepository(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.check(os.RemoveAll(tr.path(".git")))
	tr.check(os.RemoveAll(tr.path(".mailtree")))
	tr.git("init", "-q", "-b", "trunk/x")
	tr.check(Init(tr.dir))
	tr.git("config", "gc.auto", "7")
	config := string(tr.file(".git/config"))
	tr.check(Init(tr.dir))
	tr.equal("configuration", string(tr.file(".git/config")), config)
	var err error
	tr.log, err = Open(Config{Dir: tr.dir})
	tr.check(err)
	tr.send("m1", "m1", ".gitignore")
	tr.flush()
	tr.write(".gitignore", ".mailtree\n")
	tr.send("m2", "m2")
	tr.flush()
	tr.git("pack-refs", "--all")
	tr.git("checkout", "-q", "--", ".gitignore")
	tr.write(".git/info/exclude", ".mailtree\n")
	tr.send("m3", "m3")
	tr.flush()
	tr.equal("ids", strings.Join(tr.ids(), " "), "m1 m2 m3")
	tr.sound()
	tr.equal("branch", tr.git("symbolic-ref", "HEAD"), "refs/heads/trunk/x")
}

// TestOldIndexWrittenBack checks that nothing is lost if `git commit` reads the index before we move it and the
// branch, and writes it back afterwards.
func TestOldIndexWrittenBack(t *testing.T) {
	t.Parallel()
	for _, retried := range []bool{false, true} {
		t.Run(fmt.Sprintf("retried at once %v", retried), func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, Config{External: true})
			tr.send("m1", "messages/m1", "messages/m2")
			tr.flush()
			old, err := os.ReadFile(tr.path(".git/index"))
			tr.check(err)
			tr.check(os.Remove(tr.path("messages/m2")))
			tr.send("m3", "messages/m1", "messages/m3")
			tr.log.Record([]writer.Op{op("unread", "A", "m2", "messages/m2")}, nil)
			tr.flush()
			tr.check(os.WriteFile(tr.path(".git/index"), old, 0o644))
			if retried {
				tr.git("commit", "-qm", "by hand")
				tr.equal("files", tr.git("ls-tree", "-r", "--name-only", "HEAD", "messages/"), "messages/m1\nmessages/m2")
			}
			tr.run() // Run repeats the check without being asked
			tr.until("put back", func() bool { return tr.git("status", "--porcelain") == "" })
			tr.flush()
			tr.sound()
			tr.equal("files", tr.git("ls-tree", "-r", "--name-only", "HEAD", "messages/"), "messages/m1\nmessages/m3")
			tr.equal("ids", strings.Join(tr.ids(), " "), "m1 m3 m2")
		})
	}
}

// TestWayBack checks that the command that State suggests checks out the recorded branch and keeps uncommitted files,
// even if the branch's name must be quoted for a shell.
func TestWayBack(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	const mails = "fix(it's)&co"
	tr.git("branch", "-m", mails)
	tr.check(os.Remove(tr.path(".git/" + branchFile)))
	tr.send("m1", "status", "removed")
	tr.flush()
	tr.git("branch", "older")
	tr.send("m2", "status", "mark", "new")
	tr.flush()
	tr.git("checkout", "-q", "older")
	tr.send("m3", "status", "mark", "meanwhile", "we*rd :(top)")
	tr.check(os.Remove(tr.path("removed")))
	tr.state("detached", "git checkout")
	advice := strings.Split(tr.log.State().Reason, "`")
	if len(advice) != 5 {
		t.Fatalf("%q", advice)
	}
	run := func(command string) error {
		c := exec.Command("sh", "-c", command)
		c.Dir = tr.dir
		out, err := c.CombinedOutput()
		t.Logf("%s\n%s", command, out)
		return err
	}
	if run(advice[1]) == nil {
		t.Error("no file was in the way")
	}
	tr.check(run(advice[3]))
	tr.equal("branch", tr.git("symbolic-ref", "--short", "HEAD"), mails)
	tr.equal("not on the other branch", tr.git("ls-tree", "--name-only", "older"), ".gitignore\nremoved\nstatus")
	tr.log.Record([]writer.Op{op("clear", "A", "m4", "removed")}, nil)
	tr.goesOn()
	tr.equal("ids", strings.Join(tr.ids(), " "), "m1 m2 m3 m4")
	for path, want := range map[string]string{"status": "m3", "mark": "m3", "new": "m2", "meanwhile": "m3", "we*rd :(top)": "m3"} {
		tr.equal(path, tr.git("show", "HEAD:"+path), "text of "+want)
	}
}
