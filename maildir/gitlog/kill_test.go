package gitlog

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailtree/maildir/writer"
)

// steps lists the steps of a commit at which the tests interfere.
var steps = []string{"reserved", "staged", "index locked", "ref locked", "index moved", "ref moved", "unlocked", "durable"}

// TestKill checks that Open repairs the repository that is left behind when a run is killed at any step. In production,
// the server records uncommitted operations again from the journal. The second half of the test does the same thing.
func TestKill(t *testing.T) {
	t.Parallel()
	for _, step := range steps {
		for _, byHand := range []bool{false, true} {
			for _, forward := range []bool{false, true} {
				name := step
				if byHand {
					name += ", lock removed by a user"
				}
				if forward {
					name += ", to another machine's commit"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					killAt(t, step, byHand, forward)
				})
			}
		}
	}
}

// killAt kills a run that makes a commit. If forward is set, the run instead fast-forwards the branch to another
// machine's commit.
func killAt(t *testing.T, step string, byHand, forward bool) {
	tr := newTree(t, Config{})
	tr.send("first", "first", "gone")
	tr.flush()
	tr.write("late", "late")
	tr.check(os.Remove(tr.path("gone")))
	again, theirs := op("send", "A", "late", "late", "gone"), ""
	again.Recovered = true
	if forward {
		theirs = tr.elsewhere("late", "gone")
		again.Merges.Commit = theirs
	}
	exe, err := os.Executable()
	tr.check(err)
	c := exec.Command(exe)
	c.Env = append(os.Environ(), "GITLOG_DIR="+tr.dir, "GITLOG_KILL_AT="+step, "GITLOG_MERGES="+theirs)
	opened := engineOf(t)
	if isEmbedded(t) && !forward { // with forward, the git program is killed and the embedded engine repairs the repository
		c.Env = append(c.Env, "GITLOG_EMBEDDED=1")
		if byHand {
			opened = nil
		}
	}
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process was not killed: %v\n%s", err, out)
	}
	moved := strings.Contains("index moved, ref moved, unlocked, durable", step)
	locked := strings.Contains("reserved, index locked, ref locked, index moved, ref moved", step)
	if _, err := os.Lstat(tr.path(".git/index.lock")); (err == nil) != locked {
		t.Errorf("index.lock: %v", err)
	}
	if locked {
		if _, err := tr.tryGit("commit", "-qm", "by hand", "--allow-empty"); err == nil {
			t.Error("a user could commit while index.lock was held")
		}
	}
	if byHand {
		os.Remove(tr.path(".git/index.lock"))
		os.Remove(tr.path(".git/refs/heads/main.lock"))
	}
	tr.log, err = Open(Config{Dir: tr.dir, git: opened})
	tr.check(err)
	if moved && !(byHand && step == "index moved") {
		tr.sound()
	}
	tr.log.Record([]writer.Op{again}, nil)
	tr.flush()
	switch {
	case forward && tr.log.embedded:
		tr.git("merge-base", "--is-ancestor", theirs, "HEAD")
	case forward:
		tr.equal("HEAD", tr.git("rev-parse", "HEAD"), theirs)
	default:
		tr.equal("ids", strings.Join(tr.ids(), " "), "first late")
	}
	tr.sound()
	tr.write("hand", "x")
	tr.git("add", "hand")
	tr.git("commit", "-qm", "by hand")
	tr.equal("files", tr.git("ls-files"), ".gitignore\nfirst\nhand\nlate")
	tr.sound()
}

// elsewhere returns a commit by another machine. The commit is on top of HEAD, adds one file, and removes another.
func (t *repoTree) elsewhere(added, removed string) string {
	t.Helper()
	dir := t.TempDir()
	t.git("clone", "-q", ".", dir)
	t.check(os.WriteFile(filepath.Join(dir, added), []byte(added), 0o600))
	t.git("-C", dir, "rm", "-q", removed)
	t.git("-C", dir, "add", added)
	t.git("-C", dir, "commit", "-qm", "elsewhere")
	t.git("fetch", "-q", "--no-write-fetch-head", dir)
	return t.git("-C", dir, "rev-parse", "HEAD")
}

// TestHeadLockLeft checks that a HEAD.lock left behind by an older version of mailtree delays commits only until the
// lock is old enough. (That version ran git update-ref, which could not remove the lock if the folder was moved away at
// that moment.) A lock without our mark is a user's lock, and must be kept.
func TestHeadLockLeft(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"ref moved", "index locked"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, Config{})
			tr.write("late", "late")
			exe, err := os.Executable()
			tr.check(err)
			c := exec.Command(exe)
			c.Env = append(os.Environ(), "GITLOG_DIR="+tr.dir, "GITLOG_KILL_AT="+step)
			if err := c.Run(); err == nil {
				t.Fatal("the process was not killed")
			}
			lock := func(age time.Duration) {
				tr.write(".git/HEAD.lock", "")
				at := time.Now().Add(-age)
				tr.check(os.Chtimes(tr.path(".git/HEAD.lock"), at, at))
			}
			lock(-time.Hour) // the lock's time is in the future, so that the lock is not old even on a slow machine
			tr.log, err = Open(Config{Dir: tr.dir})
			tr.check(err)
			tr.log.Record([]writer.Op{op("send", "A", "late", "late")}, nil)
			if err := tr.log.Flush(t.Context()); err == nil {
				t.Error("committed although a user's command may hold the lock")
			}
			if _, err := os.Lstat(tr.path(".git/" + markFile)); err != nil {
				t.Errorf("the owner of the lock was forgotten: %v", err)
			}
			lock(2 * leftHead)
			tr.write("next", "next")
			tr.log.Record([]writer.Op{op("send", "A", "next", "next")}, nil)
			tr.flush()
			tr.sound()
			lock(2 * leftHead)
			tr.write("last", "last")
			tr.log.Record([]writer.Op{op("send", "A", "last", "last")}, nil)
			if err := tr.log.Flush(t.Context()); err == nil {
				t.Error("committed although a user's lock is there")
			}
		})
	}
}

// TestHeadLockStays checks that if the commit was made but HEAD.lock could not be removed, the mark is kept for
// repair.
func TestHeadLockStays(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.log.step = func(name string) {
		if name == "durable" {
			tr.write(".git/HEAD.lock", "")
		}
	}
	tr.write("late", "late")
	tr.log.Record([]writer.Op{op("send", "A", "late", "late")}, nil)
	tr.flush()
	tr.log.step = func(string) {}
	old := time.Now().Add(-2 * leftHead)
	tr.check(os.Chtimes(tr.path(".git/HEAD.lock"), old, old))
	tr.send("next", "next")
	tr.flush()
	tr.sound()
}
