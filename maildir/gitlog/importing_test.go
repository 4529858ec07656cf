package gitlog

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"mailtree/fixtures/waits"
	"mailtree/maildir/history"
)

// drop writes n files, as if a user had copied them into the tree, and returns their paths.
func (t *repoTree) drop(n int) (paths []string) {
	t.Helper()
	for i := range n {
		path := fmt.Sprintf("messages/%02d/m%05d", i/500, i)
		t.write(path, "text of "+strconv.Itoa(i))
		paths = append(paths, path)
	}
	return paths
}

// commits returns the number of commits.
func (t *repoTree) commits() int {
	t.Helper()
	n, err := strconv.Atoi(t.git("rev-list", "--count", "HEAD"))
	t.check(err)
	return n
}

// TestImport checks that a very large number of edits is committed in a few commits without delay, and that State and
// the log show the progress. Fewer than a thousand edits must not be treated as an import.
func TestImport(t *testing.T) {
	t.Parallel()
	said := &waits.Log{}
	tr := newTree(t, Config{External: true, Quiet: time.Hour, Longest: time.Hour, Log: slog.New(slog.NewTextHandler(said, nil))})
	before := tr.commits()
	paths := tr.drop(mostEdits + history.ImportFrom)
	tr.log.RecordEdits(paths[:history.ImportFrom-1])
	if im := tr.log.State().Import; im != (history.Import{}) {
		t.Errorf("%+v", im)
	}
	tr.log.RecordEdits(paths)
	if im := tr.log.State().Import; im != (history.Import{Left: len(paths)}) {
		t.Errorf("%+v", im)
	}
	tr.log.commitDue(t.Context())
	if im := tr.log.State().Import; im != (history.Import{Committed: mostEdits, Left: history.ImportFrom}) {
		t.Errorf("%+v", im)
	}
	tr.flush()
	if im := tr.log.State().Import; im != (history.Import{}) {
		t.Errorf("import at the end: %+v", im)
	}
	if made := tr.commits() - before; made != 2 {
		t.Errorf("%d commits", made)
	}
	for _, line := range []string{
		`msg="many files have changed; importing them" paths=6000`,
		`msg="importing edits" committed=5000 left=1000`, `msg="import committed" paths=6000 commits=2`,
	} {
		if !strings.Contains(said.String(), line) {
			t.Errorf("the log lacks %s:\n%s", line, said)
		}
	}
	tr.sound()
}

// TestImportFillsCommit checks that if the last commit of an import is full, the import ends with that commit.
func TestImportFillsCommit(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true, Quiet: time.Hour, Longest: time.Hour})
	tr.log.RecordEdits(tr.drop(mostEdits))
	tr.log.commitDue(t.Context())
	if s := tr.log.State(); s.Import != (history.Import{}) || s.Pending != 0 {
		t.Errorf("%+v", s)
	}
}

// TestImportStops checks that StopBy ends an import in the middle of a commit. The waiting operations must still be
// committed, but the edits must not. The next start must continue the import.
func TestImportStops(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true, Quiet: time.Hour, Longest: time.Hour})
	before := tr.commits()
	paths := tr.drop(2*mostEdits + history.ImportFrom)
	building, stopped := make(chan struct{}), make(chan struct{})
	tr.log.RecordEdits(paths)
	tr.log.commitDue(t.Context())
	tr.log.step = func(step string) {
		if step == "built" {
			close(building)
			<-stopped
			tr.log.step = func(string) {}
		}
	}
	ended := make(chan struct{})
	go func() { defer close(ended); tr.log.commitDue(t.Context()) }()
	<-building
	tr.send("m1", "m1")
	tr.log.StopBy(time.Now().Add(time.Hour))
	close(stopped)
	<-ended
	tr.check(tr.log.commitLast(t.Context()))
	tr.equal("newest commit", tr.git("log", "-1", "--format=%s"), "send: A -> B: about m1")
	if made := tr.commits() - before; made != 2 {
		t.Errorf("%d commits", made)
	}
	if im := tr.log.State().Import; im != (history.Import{Committed: mostEdits, Left: mostEdits + history.ImportFrom}) {
		t.Errorf("%+v", im)
	}
	tr.equal("fsck", tr.git("fsck", "--strict", "--no-dangling"), "")

	tr.reopen(Config{External: true})
	tr.run()
	tr.until("the rest is committed", func() bool { return tr.git("status", "--porcelain") == "" })
	if made := tr.commits() - before; made != 4 {
		t.Errorf("%d commits", made)
	}
	tr.sound()
}
