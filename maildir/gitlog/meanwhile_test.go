package gitlog

import (
	"context"
	"os"
	"strings"
	"testing"

	"mailtree/maildir"
)

// What can happen between two steps of ours that nobody else would wait for.

// A commit is made although what was staged for it cannot be cleared away: it is not made again, and a lock that a person has
// taken since stays.
func TestStagingThatStays(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.log.step = func(s string) {
		if s == "durable" {
			tr.check(os.Remove(tr.path(".git/" + lockStage)))
			tr.write(".git/"+lockStage+"/x", "in the way")
			tr.write(".git/index.lock", "a person's")
		}
	}
	done := 0
	tr.write("m1", "x")
	tr.log.Record([]maildir.Op{op("send", "A", "m1", "m1")}, func() { done++ })
	_ = tr.log.Flush(context.Background())
	tr.log.step = func(string) {}
	tr.check(os.Remove(tr.path(".git/index.lock")))
	tr.check(os.RemoveAll(tr.path(".git/" + lockStage)))
	tr.flush()
	tr.equal("ids", strings.Join(tr.ids(), " "), "m1")
	if done != 1 {
		t.Errorf("told %d times", done)
	}
	tr.sound()
}

// A person goes to a branch of their own while our commit is about to be moved to: their index gets no mail of another branch.
func TestBranchLeftMeanwhile(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.log.step = func(s string) {
		if s == "ref locked" && tr.git("rev-parse", "--abbrev-ref", "HEAD") == "main" {
			tr.git("symbolic-ref", "HEAD", "refs/heads/side") // what checkout -b does, which takes no lock of the index
			tr.git("update-ref", "refs/heads/side", "main")
		}
	}
	tr.send("m1", "m1")
	if err := tr.log.Flush(context.Background()); err == nil {
		t.Error("committed to a branch that was left")
	}
	tr.equal("staged on the other branch", tr.git("diff", "--cached", "--name-only"), "")
	tr.log.step = func(string) {}
	tr.git("checkout", "-q", "main")
	tr.flush()
	tr.equal("ids", strings.Join(tr.ids(), " "), "m1")
	tr.sound()
}
