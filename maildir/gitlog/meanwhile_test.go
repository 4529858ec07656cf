package gitlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mailtree/fixtures/inmemory"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// These tests cover changes that other programs make between two of our steps.

// TestStagingThatStays checks a commit whose staged files cannot be removed afterwards. The commit must not be
// repeated. If a user has taken a lock since then, that lock must not be removed.
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
	tr.log.Record([]writer.Op{op("send", "A", "m1", "m1")}, func() { done++ })
	_ = tr.log.Flush(context.Background())
	tr.log.step = func(string) {}
	tr.check(os.Remove(tr.path(".git/index.lock")))
	tr.check(os.RemoveAll(tr.path(".git/" + lockStage)))
	tr.flush()
	tr.equal("ids", strings.Join(tr.ids(), " "), "m1")
	if done != 1 {
		t.Errorf("done was called %d times", done)
	}
	tr.sound()
}

// TestBranchLeftMeanwhile checks that if a user checks out another branch just before our branch moves, files from
// our branch do not end up in the user's index.
func TestBranchLeftMeanwhile(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.log.step = func(s string) {
		if s == "index locked" && tr.git("rev-parse", "--abbrev-ref", "HEAD") == "main" {
			tr.git("symbolic-ref", "HEAD", "refs/heads/side") // like checkout -b, this does not lock the index
			tr.git("update-ref", "refs/heads/side", "main")
		}
	}
	tr.send("m1", "m1")
	if err := tr.log.Flush(context.Background()); err == nil {
		t.Error("committed to a branch that is no longer checked out")
	}
	tr.equal("staged on the other branch", tr.git("diff", "--cached", "--name-only"), "")
	tr.log.step = func(string) {}
	tr.git("checkout", "-q", "main")
	tr.flush()
	tr.equal("ids", strings.Join(tr.ids(), " "), "m1")
	tr.sound()
}

// TestPreserveOnAnotherBranch checks that calling Preserve while another branch is checked out does not affect commits
// on the recorded branch. If an operation then writes a file, and a user changes the file before the commit, the
// commit must contain the file as the operation wrote it.
func TestPreserveOnAnotherBranch(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.record(tr.deliver("c1", "claims/c.json", "claimed\n"))
	tr.flush()
	tr.git("checkout", "-q", "-b", "side")
	tr.git("rm", "-q", "claims/c.json")
	tr.git("commit", "-qm", "by hand")
	tr.check(tr.log.Preserve(context.Background(), []string{".gitignore"}))
	tr.git("checkout", "-q", "main")
	tr.record(tr.deliver("c2", "claims/c.json", "renewed\n"))
	tr.write("claims/c.json", "by hand\n")
	tr.flush()
	tr.equal("renewed", tr.git("log", "-1", "--format=%an", "-S", "renewed", "--diff-filter=M", "--grep=c2", "--", "claims/c.json"), "A")
	tr.equal("at last", tr.git("show", "HEAD:claims/c.json"), "by hand")
	tr.sound()
}

// TestEditBeforeAnOperation checks what happens if an operation that has not been recorded yet writes to a path while
// an edit of that path is waiting to be committed. The operation's content must not be committed as an edit, whether
// the operation writes it before the commit begins or while the commit is reading the files.
func TestEditBeforeAnOperation(t *testing.T) {
	t.Parallel()
	const path = "claims/c.json"
	for name, c := range map[string]struct {
		act  func(tr *repoTree)
		late bool
	}{
		"changed by hand": {func(tr *repoTree) {
			tr.write(path, "by hand\n")
			tr.log.RecordEdits([]string{path, "other"})
			tr.check(tr.log.Preserve(context.Background(), []string{path}))
		}, false},
		"removed by hand": {func(tr *repoTree) {
			tr.check(os.Remove(tr.path(path)))
			tr.log.RecordEdits([]string{path, "other"})
		}, false},
		"removed by hand, late": {func(tr *repoTree) {
			tr.check(os.Remove(tr.path(path)))
			tr.log.RecordEdits([]string{path, "other"})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tr *repoTree
			var renewed writer.Op
			asked, writes := 0, false
			renew := func() { renewed, writes = tr.deliver("c2", path, "renewed\n"), true }
			tr = newTree(t, Config{External: true, UnderWay: func(p string) bool {
				if p != path {
					return false
				}
				if asked++; c.late && asked == 1 { // by now, the files have been read
					renew()
				}
				return writes
			}})
			tr.record(tr.deliver("c1", path, "claimed\n"))
			tr.flush()
			c.act(tr)
			tr.write("other", "by hand\n")
			if !c.late {
				renew()
			}
			tr.flush() // Run does this when the edits are due
			tr.equal("other edits", tr.git("log", "-1", "--format=%s", "--", "other"), "edit: other")
			tr.record(renewed)
			writes = false
			tr.flush()
			tr.equal("ids", strings.Join(tr.ids(), " "), "c1 c2")
			tr.equal("who renewed", tr.git("log", "-1", "--format=%an", "-S", "renewed", "--", path), "A")
			tr.equal("pending", fmt.Sprint(tr.log.State().Pending), "0")
			tr.sound()
		})
	}
}

// TestMadeAgainAfterARemoval checks that if an operation removes a file, the removal is committed even if a user
// recreates the file before the commit. The new file must be a separate edit.
func TestMadeAgainAfterARemoval(t *testing.T) {
	t.Parallel()
	for name, committed := range map[string]bool{"": false, "and commits it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, Config{External: true})
			tr.record(tr.deliver("m1", "m1.read", "read\n"))
			tr.flush()
			tr.check(os.Remove(tr.path("m1.read")))
			unread := op("unread", "A", "m1", "m1.read")
			unread.Written = map[string]tree.Written{"m1.read": {Gone: true}}
			tr.record(unread)
			tr.write("m1.read", "by hand\n")
			if committed {
				tr.git("commit", "-qam", "by hand")
			}
			tr.commitOps()
			at := "D\tm1.read"
			if committed {
				at = ""
			}
			tr.equal("removed", tr.git("show", "--name-status", "--format="), at)
			tr.flush()
			tr.equal("at last", tr.git("show", "HEAD:m1.read"), "by hand")
			if !committed {
				tr.equal("made again", tr.git("log", "-1", "--format=%s", "--", "m1.read"), "edit: m1.read")
			}
			tr.equal("ids", strings.Join(tr.ids(), " "), "m1 m1")
			tr.sound()
		})
	}
}

// TestLockOfAPersonGoingBack checks that a user's lock on the branch is not mistaken for ours if the run that left the
// mark only repaired the index or took index.lock, and did not move the branch. In this test, the user moves the branch
// back to the commit in the mark, so the user's lock has the same content as ours would have.
func TestLockOfAPersonGoingBack(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	at := tr.git("rev-parse", "HEAD")
	repo, err := tr.log.openRepository(t.Context(), newMemory())
	tr.check(err)
	tr.check(repo.writeMark(&mark{Branch: "refs/heads/main", Old: at, New: at}))
	tr.git("commit", "-qm", "by hand", "--allow-empty")
	tr.write(".git/refs/heads/main.lock", at+"\n")
	_ = tr.log.Flush(context.Background())
	tr.equal("the user's lock", string(tr.file(".git/refs/heads/main.lock")), at+"\n")
	tr.check(os.Remove(tr.path(".git/refs/heads/main.lock")))
	tr.flush()
	tr.sound()
}

// TestRemovedMeanwhile checks that if a project is removed at any step of a commit, none of its folders is recreated.
func TestRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"begin", "built", "objects", "staged", "index locked", "ref locked", "index moved", "ref moved", "unlocked"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, Config{})
			aside := filepath.Join(inmemory.Dir(t), "aside")
			remove := func(s string) {
				if s == at {
					tr.check(os.Rename(tr.dir, aside))
				}
			}
			tr.log.step = remove
			tr.send("m1", "m1")
			remove("begin")
			if err := tr.log.Flush(context.Background()); err == nil && at != "unlocked" && at != "ref moved" {
				t.Error("committed to a folder that is gone")
			}
			tr.log.step = func(string) {}
			_ = tr.log.Flush(context.Background())
			if _, err := os.Lstat(tr.dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder was recreated: %v, %v", err, filesBelow(t, tr.dir))
			}
		})
	}
}

// filesBelow returns the paths below a folder.
func filesBelow(t *testing.T, dir string) (paths []string) {
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		paths = append(paths, strings.TrimPrefix(p, dir))
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return paths
}
