package gitlog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailtree/maildir/clock"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// deliver writes a staged file, renames it to path, and returns an operation that records the content, as the writer
// does.
func (t *repoTree) deliver(id, path, text string) writer.Op {
	t.Helper()
	staged := ".mailtree/tmp/" + strings.ReplaceAll(path, "/", "-")
	t.write(staged, text)
	t.check(os.MkdirAll(filepath.Dir(t.path(path)), 0o755))
	t.check(os.Rename(t.path(staged), t.path(path)))
	o := op("send", "A", id, path)
	o.Written = map[string]tree.Written{path: {Data: []byte(text), Stat: t.statOf(path)}}
	return o
}

func (t *repoTree) statOf(path string) tree.FileStat {
	t.Helper()
	d, err := tree.Open(t.dir, 0)
	t.check(err)
	defer d.Close()
	st, err := d.Stat(path)
	t.check(err)
	return st
}

func (t *repoTree) record(ops ...writer.Op) { t.log.Record(ops, nil) }

// commitOps commits the operations, but not the edits that result from them.
func (t *repoTree) commitOps() {
	t.Helper()
	t.check(t.log.exclusive(context.Background(), func() error { return t.log.commitOps(context.Background()) }))
}

// TestWrittenIsCommitted checks that a commit contains the content that the operation wrote, even if a user edits,
// replaces or removes the file before the commit. git status must show the user's change, and the change must be
// committed separately.
func TestWrittenIsCommitted(t *testing.T) {
	t.Parallel()
	const text = "as delivered\n"
	for name, c := range map[string]struct {
		act          func(tr *repoTree, p string)
		status, edit string // the edit's name and status; "" if there is no edit
	}{
		"untouched":            {func(*repoTree, string) {}, "", ""},
		"edited":               {func(tr *repoTree, p string) { tr.write(p, "by hand\n") }, " M m1", "M\tm1"},
		"edited, of that size": {func(tr *repoTree, p string) { tr.write(p, "AS DELIVERED\n") }, " M m1", "M\tm1"},
		"made empty":           {func(tr *repoTree, p string) { tr.write(p, "") }, " M m1", "M\tm1"},
		"written anew": {func(tr *repoTree, p string) {
			tr.check(os.Remove(tr.path(p)))
			tr.write(p, text)
		}, "", ""},
		"removed":     {func(tr *repoTree, p string) { tr.check(os.Remove(tr.path(p))) }, " D m1", "D\tm1"},
		"executable":  {func(tr *repoTree, p string) { tr.check(os.Chmod(tr.path(p), 0o755)) }, " M m1", "M\tm1"},
		"touched":     {func(tr *repoTree, p string) { tr.check(os.Chtimes(tr.path(p), time.Now(), time.Unix(1, 0))) }, "", ""},
		"now a link":  {func(tr *repoTree, p string) { os.Remove(tr.path(p)); tr.check(os.Symlink("x", tr.path(p))) }, " T m1", "T\tm1"},
		"now a FIFO":  {func(tr *repoTree, p string) { os.Remove(tr.path(p)); tr.check(syscall.Mkfifo(tr.path(p), 0o600)) }, "*", ""},
		"now a place": {func(tr *repoTree, p string) { os.Remove(tr.path(p)); tr.write(p+"/x", "x") }, " D m1", "D\tm1\nA\tm1/x"},
	} {
		for _, external := range []bool{true, false} {
			for _, stat := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, external %v, stat known %v", name, external, stat), func(t *testing.T) {
					t.Parallel()
					tr := newTree(t, Config{External: external})
					o := tr.deliver("m1", "m1", text)
					if !stat {
						o.Written["m1"] = tree.Written{Data: []byte(text)}
					}
					tr.record(o)
					c.act(tr, "m1")
					tr.commitOps()
					tr.equal("delivered", tr.git("show", "HEAD:m1")+"\n", text)
					tr.equal("mode", tr.git("ls-tree", "HEAD", "m1")[:6], "100644")
					if c.status != "*" {
						tr.equal("status", tr.git("status", "--porcelain"), c.status)
					}
					head := tr.git("rev-parse", "HEAD")
					tr.flush()
					if !external || c.edit == "" {
						tr.equal("HEAD", tr.git("rev-parse", "HEAD"), head)
						return
					}
					tr.equal("edit", tr.git("show", "--name-status", "--format="), c.edit)
					verb, _, _ := strings.Cut(tr.git("log", "-1", "--format=%an %s"), ":")
					want := "mailtree edit"
					if c.edit == "D\tm1" {
						want = "mailtree remove"
					}
					tr.equal("author and verb", verb, want)
					tr.sound()
				})
			}
		}
	}
}

// TestWrittenIsNotRead checks that if a file's stat data prove that it is unchanged, the file is read neither for the
// commit nor for the index.
func TestWrittenIsNotRead(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	o := tr.deliver("m1", "m1", "as delivered\n")
	tr.check(os.Chtimes(tr.path("m1"), time.Now(), time.Now().Add(-time.Hour)))
	o.Written["m1"] = tree.Written{Data: []byte("AS DELIVERED\n"), Stat: tr.statOf("m1")} // differs from the file's actual content
	tr.check(clock.Sleep(context.Background(), 2*restTime))
	tr.record(o)
	tr.commitOps()
	tr.equal("commit", tr.git("show", "HEAD:m1"), "AS DELIVERED")
	tr.equal("status", tr.git("status", "--porcelain"), "")
}

// TestEditWithItsTimeSetBack checks that the server notices an edit by its ctime, even if the edit keeps the size and
// sets the mtime back.
func TestEditWithItsTimeSetBack(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	o := tr.deliver("m1", "m1", "as delivered\n")
	at := time.Now().Add(-time.Hour) // keeps Git from having to read the file again
	tr.check(os.Chtimes(tr.path("m1"), at, at))
	o.Written["m1"] = tree.Written{Data: []byte("as delivered\n"), Stat: tr.statOf("m1")}
	tr.check(clock.Sleep(context.Background(), 2*restTime))
	tr.check(os.WriteFile(tr.path("m1"), []byte("AS DELIVERED\n"), 0o600))
	tr.check(os.Chtimes(tr.path("m1"), at, at))
	tr.check(clock.Sleep(context.Background(), 2*restTime))
	tr.record(o)
	tr.commitOps()
	tr.equal("commit", tr.git("show", "HEAD:m1"), "as delivered")
	tr.equal("status", tr.git("status", "--porcelain"), " M m1")
	tr.flush()
	tr.equal("edit", tr.git("show", "HEAD:m1"), "AS DELIVERED")
	tr.equal("subject", tr.git("log", "-1", "--format=%s"), "edit: m1")
	tr.sound()
}

// TestWrittenTwice checks that if several operations write to a path, the commit of each operation contains the content
// that this operation wrote. If that content is unknown, only the last operation's commit must contain the path.
func TestWrittenTwice(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.record(tr.deliver("m1", "status", "ready\n"), tr.deliver("m2", "gone", "x\n"))
	tr.record(tr.deliver("m3", "status", "work\n"))
	tr.check(os.Remove(tr.path("gone")))
	tr.record(op("unread", "A", "m4", "gone"))
	tr.flush()
	tr.equal("content", tr.git("show", "HEAD:status"), "work")
	tr.equal("files", tr.git("ls-files"), ".gitignore\nstatus")
	tr.equal("ids", strings.Join(tr.ids(), " "), "m1 m2 m3 m4")
	tr.equal("versions", tr.git("log", "--reverse", "--format=%s", "--name-status", "-m", "HEAD~4.."), `send: A -> B: about m1

A	status
send: A -> B: about m2

A	gone
send: A -> B: about m3

M	status
unread: A -> B: about m4

D	gone`)
	tr.equal("replaced", tr.git("show", "HEAD~3:status"), "ready")
	tr.sound()
}

// TestWrittenBetweenGroups checks what happens if a group is committed after the next group has replaced its file.
// Each commit must contain what its own group wrote, and the server's write must not become an edit.
func TestWrittenBetweenGroups(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.record(tr.deliver("m1", "status", "ready\n"))
	tr.log.step = func(s string) {
		if s == "staged" {
			tr.log.step = func(string) {}
			tr.record(tr.deliver("m2", "status", "work\n"))
		}
	}
	tr.flush()
	tr.flush()
	tr.equal("history", tr.git("log", "--reverse", "--format=%s", "--", "status"), "send: A -> B: about m1\nsend: A -> B: about m2")
	tr.equal("first", tr.git("show", "HEAD~:status"), "ready")
	tr.sound()
}

// TestWrittenAfterAPersonsCommit checks that our commit does not revert a user's commit that was made after the
// operation, whether the user's commit contains a new file or the file that the operation replaced. An operation must
// override a commit that was made before it.
func TestWrittenAfterAPersonsCommit(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.record(tr.deliver("m0", "status", "ready\n"), tr.deliver("m0", "box/m", "x\n"))
	tr.flush()
	tr.record(tr.deliver("m1", "m1", "as delivered\n"), tr.deliver("m2", "status", "work\n"), tr.deliver("m3", "box/n", "y\n"))
	tr.write("m1", "by hand\n")
	tr.write("status", "offline\n")
	tr.check(os.RemoveAll(tr.path("box")))
	tr.write("box", "a file\n")
	tr.git("add", "-A")
	tr.git("commit", "-qm", "mine")
	tr.flush()
	tr.equal("subject", tr.git("log", "-1", "--format=%s"), "send: A -> B: about m3")
	tr.equal("changes", tr.git("diff", "--name-status", "HEAD~3"), "")
	tr.sound()
	tr.write("status", "by hand\n") // a user commits this before the operation, and edits the file after the operation
	tr.git("commit", "-qam", "mine")
	tr.check(tr.log.Preserve(context.Background(), []string{"status"}))
	tr.record(tr.deliver("m4", "status", "ready\n"))
	tr.write("status", "once more\n")
	tr.flush()
	tr.equal("history", tr.git("log", "-3", "--format=%s", "--", "status"), "edit: status\nsend: A -> B: about m4\nmine")
	tr.equal("delivered", tr.git("show", "HEAD~:status"), "ready")
	tr.sound()
	tr.record(tr.deliver("m5", "status", "work\n")) // the user commits after this operation and edits the file after the next one
	tr.write("status", "by hand again\n")
	tr.git("commit", "-qam", "mine")
	tr.check(tr.log.Preserve(context.Background(), []string{"status"}))
	tr.record(tr.deliver("m6", "status", "ready\n"))
	tr.write("status", "and again\n")
	tr.flush()
	tr.equal("history", tr.git("log", "-3", "--format=%s", "--", "status"), "edit: status\nsend: A -> B: about m6\nmine")
	tr.equal("delivered", tr.git("show", "HEAD~:status"), "ready")
	tr.sound()
}

// TestWrittenAfterARewrite checks that an operation is committed correctly if the history has been rewritten since the
// operation was recorded.
func TestWrittenAfterARewrite(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.record(tr.deliver("m1", "status", "ready\n"))
	tr.flush()
	tr.record(tr.deliver("m2", "status", "work\n"), tr.deliver("m3", "m3", "as delivered\n"))
	tr.write("status", "by hand\n")
	tr.write("m3", "by hand\n")
	tr.git("commit", "-qam", "mine", "--amend")
	tr.git("reflog", "expire", "--expire=now", "--all")
	tr.git("gc", "-q", "--prune=now")
	tr.log.mem = newMemory()
	tr.commitOps()
	tr.equal("status", tr.git("show", "HEAD:status"), "by hand")
	tr.equal("m3", tr.git("show", "HEAD:m3"), "as delivered")
	tr.flush()
	tr.equal("m3", tr.git("show", "HEAD:m3"), "by hand")
	tr.sound()
}

func TestPreserveAfterWritten(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.record(tr.deliver("m1", "status", "ready\n"))
	tr.write("status", "by hand\n")
	tr.check(tr.log.Preserve(context.Background(), []string{"status"}))
	tr.equal("history", tr.git("log", "-2", "--format=%s", "--", "status"), "edit: status\nsend: A -> B: about m1")
	tr.equal("delivered", tr.git("show", "HEAD~:status"), "ready")
	tr.flush()
	tr.sound()
}

// TestWrittenAtEveryStep checks that if a user saves a file at any step of a commit, the commit contains what the
// operation wrote, and the user's change becomes an edit.
func TestWrittenAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, step := range append([]string{"built"}, steps...) {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, Config{External: true})
			if step == "reserved" {
				tr.log.optimistic = 0
			}
			tr.record(tr.deliver("m1", "m1", "as delivered\n"))
			saved := false
			tr.log.step = func(s string) {
				if s == step {
					tr.write("m1", "AS DELIVERED\n")
					saved = true
				}
			}
			tr.commitOps()
			tr.equal("delivered", tr.git("show", "HEAD:m1"), "as delivered")
			if !saved {
				t.Fatal("the step was not reached")
			}
			tr.equal("status", tr.git("status", "--porcelain"), " M m1")
			tr.log.RecordEdits([]string{"m1"})
			tr.flush()
			tr.equal("edit", tr.git("show", "HEAD:m1"), "AS DELIVERED")
			tr.sound()
		})
	}
}

// TestOldIndexWrittenBackBesideAnEdit checks that if a race within Git makes `git commit` write back an old index, the
// index is repaired, even if a user has edited the file on disk.
func TestOldIndexWrittenBackBesideAnEdit(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	old, err := os.ReadFile(tr.path(".git/index"))
	tr.check(err)
	tr.record(tr.deliver("m1", "m1", "as delivered\n"))
	tr.write("m1", "by hand\n")
	tr.flush()
	tr.check(os.WriteFile(tr.path(".git/index"), old, 0o644))
	tr.flush()
	tr.equal("status", tr.git("status", "--porcelain"), " M m1")
}

// TestWrittenIsBounded checks that the total size of the contents in the queue is limited, and that above the limit,
// the commit contains the files on disk.
func TestWrittenIsBounded(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	big := make([]byte, 12<<20)
	for i := range 3 {
		o := op("send", "A", fmt.Sprint("m", i), fmt.Sprint("m", i))
		o.Written = map[string]tree.Written{o.Paths[0]: {Data: big}}
		tr.write(o.Paths[0], "on disk")
		tr.record(o)
		if i == 2 && o.Written == nil {
			t.Error("the caller's operation was changed")
		}
	}
	if n := tr.log.held; n != 24<<20 {
		t.Errorf("%d bytes are held", n)
	}
	tr.commitOps()
	for path, size := range map[string]string{"m0": "12582912", "m1": "12582912", "m2": "7"} {
		tr.equal("size of "+path, tr.git("cat-file", "-s", "HEAD:"+path), size)
	}
	tr.flush()
	if n := tr.log.held; n != 0 {
		t.Errorf("%d bytes are held at the end", n)
	}
	tr.sound()
}
