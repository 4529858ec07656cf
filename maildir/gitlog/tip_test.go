package gitlog

import (
	"context"
	"strings"
	"testing"
	"time"

	"mailtree/maildir/history"
)

// TestTip: operations that wait are told as if they were committed, with their contents and what can
// be undone, and nothing is committed for that.
func TestTip(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{Delay: time.Hour})
	tr.record(tr.deliver("m1", "messages/m1.md", "one\n"))
	tr.flush()
	head := tr.git("rev-parse", "HEAD")
	changed := tr.deliver("m1", "messages/m1.md", "two\n")
	changed.Verb = "amend"
	tr.record(changed)
	tr.record(tr.deliver("m2", "messages/m2.md", "other\n"))
	var patches []string
	tr.check(tr.log.Walk(context.Background(), everything(), func(r *history.Revision) error {
		if waits := len(patches) < 2; waits != (r.Hash == "") || waits && !r.At.Equal(changed.At) {
			t.Errorf("commit %q of %v", r.Hash, r.At)
		}
		patch, err := r.Files[0].Patch()
		_, lines, _ := strings.Cut(patch, "@@\n")
		patches = append(patches, r.Ops[0].Verb+" "+r.Ops[0].ID+": "+lines)
		return err
	}))
	tr.equal("what is told", strings.Join(patches[:3], ""), "send m2: +other\namend m1: -one\n+two\nsend m1: +one\n")
	done, err := tr.log.LastDone(context.Background(), "A", "m1", func(string) bool { return true })
	tr.check(err)
	if c := done.Changes; done.Verb != "amend" || len(c) != 1 || string(c[0].Was) != "one\n" || string(c[0].Is) != "two\n" {
		t.Errorf("done last: %+v", done)
	}
	tr.equal("HEAD", tr.git("rev-parse", "HEAD"), head)
	tr.flush()
	tr.sound()
}

// TestTipUnknown: where the contents of what waits are not known it is committed, and where that
// cannot be, the history is read without; but nobody is told that an older operation was the last.
func TestTipUnknown(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{Delay: time.Hour})
	tr.send("m1", "m1")
	tr.equal("the newest", tr.walk(everything())[0], "send A m1 [A -> B: about m1], added m1")
	tr.write(".git/MERGE_HEAD", tr.git("rev-parse", "HEAD")+"\n")
	tr.send("m2", "m2")
	tr.equal("during a merge", tr.walk(everything())[0], "send A m1 [A -> B: about m1], added m1")
	if done, err := tr.log.LastDone(context.Background(), "A", "", func(string) bool { return true }); err == nil {
		t.Errorf("done last: %+v", done)
	}
}

// TestTipMeanwhile: at every step of a commit each operation is told once.
func TestTipMeanwhile(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{Delay: time.Hour})
	var steps []string
	q := everything()
	q.Op = func(history.RecordedOp) bool { return true }
	tr.log.step = func(step string) {
		steps = append(steps, step)
		tr.equal(step, strings.Join(tr.walk(q), "\n"), "send A m2 [A -> B: about m2], added m2\n"+
			"send A m1 [A -> B: about m1], added m1\nproject   [-> B: about], added .gitignore")
	}
	tr.record(tr.deliver("m1", "m1", "one\n"))
	tr.record(tr.deliver("m2", "m2", "two\n"))
	tr.commitOps()
	if len(steps) < 5 {
		t.Errorf("only %v", steps)
	}
}
