package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mailtree/fixtures/bulk"
	"mailtree/fixtures/storetest"
	"mailtree/fixtures/waits"
	"mailtree/maildir/format"
)

// The limits for an import of 60,000 files, which only the long form enforces.
const (
	importTime    = 2 * time.Minute
	importCommits = 200
)

// TestFaultImport checks an import of many files. A user copies messages with empty marks into the tree while agents
// send mail. The user then copies more messages, and the server is stopped while it is still importing them. Everything
// is committed in a few commits, the server stops in time, and the next start continues the import. The long form has
// 60,000 files with 20,000 marks, and enforces time limits.
func TestFaultImport(t *testing.T) {
	longer(t)
	messages := extent(1_000, 13_334)
	d := newDaemon(t, filepath.Join(t.TempDir(), "store"))
	d.real = true
	d.start()
	l := newLoad(t, d)
	im := &bulkImport{load: l, mail: bulk.Mail{Messages: 2 * messages}}
	quiet := im.sends(func() { until(t, "some sends", time.Minute, func() bool { return len(l.ledger.Sends()) >= 100 }) })
	var files int
	var took time.Duration
	busy := im.sends(func() {
		began := time.Now()
		files = im.drop(0, messages)
		im.committed()
		took = time.Since(began)
	})
	first := im.commits()
	t.Logf("%d files, %d of them empty marks: committed after %s in %d commits; sends meanwhile %d, p50 %s, p99 %s (before %d, %s, %s)",
		files, files/3, took.Round(time.Millisecond), first, len(busy), busy.At(0.5), busy.At(0.99), len(quiet), quiet.At(0.5), quiet.At(0.99))

	files = im.drop(messages, 2*messages)
	until(t, "an import begins", importTime, im.runs)
	began := time.Now()
	hung := time.AfterFunc(time.Minute, func() { d.cmd.Process.Signal(syscall.SIGQUIT) }) // SIGQUIT logs all goroutine stacks
	d.interrupt()
	hung.Stop()
	stopped := time.Since(began)
	left := im.uncommitted()
	d.start()
	began = time.Now()
	im.committed()
	again := time.Since(began)
	d.stop()
	t.Logf("stopped in the middle of %d more files after %s, with %d paths left; committed %s after the start, in %d commits in all",
		files, stopped.Round(time.Millisecond), left, again.Round(time.Millisecond), im.commits())
	for _, p := range append(storetest.CheckEdited(t.Context(), d.store), storetest.CheckAnswered(d.store, l.ledger.Sends(), nil, "")...) {
		t.Error(p)
	}
	if n := im.commits(); n > 2*importCommits {
		t.Errorf("%d commits", n)
	}
	if *faults == "long" {
		waits.Limit(t, "the import", took, importTime)
		waits.Limit(t, "the stop", stopped, stopTime)
		waits.Limit(t, "a send during the import (p50)", busy.At(0.5), time.Second)
	}
}

// bulkImport is a user who copies messages with marks into a load's tree.
type bulkImport struct {
	*load
	mail  bulk.Mail
	files []string
}

// sends sends ten messages a second, one at a time, while work runs. It returns how long each message took.
func (im *bulkImport) sends(work func()) (took bulk.Times) {
	ctx, cancel := context.WithCancel(im.d.t.Context())
	var sending sync.WaitGroup
	sending.Go(func() {
		next := time.NewTicker(100 * time.Millisecond)
		defer next.Stop()
		for ctx.Err() == nil {
			began := time.Now()
			if err := im.send(im.draft("Ann")); err != nil {
				im.d.t.Errorf("send: %v", err)
			}
			took = append(took, time.Since(began))
			<-next.C
		}
	})
	work()
	cancel()
	sending.Wait()
	slices.Sort(took)
	return took
}

// drop writes messages with an empty .read mark next to each inbox copy, and an empty .archived mark next to every
// second copy. It returns the number of files.
func (im *bulkImport) drop(from, to int) int {
	before := len(im.files)
	tree := im.d.tree()
	im.files = append(im.files, im.mail.Write(im.d.t, tree, from, to)...)
	for n := from; n < to; n++ {
		_, paths := im.mail.Message(n)
		marks := []string{format.ReadMark(paths[2]), format.ArchivedMark(paths[2])}[:1+n%2]
		for _, mark := range marks {
			if err := os.WriteFile(filepath.Join(tree, mark), nil, 0o600); err != nil {
				im.d.t.Fatal(err)
			}
		}
		im.files = append(im.files, marks...)
	}
	return len(im.files) - before
}

// committed waits until the newest commit contains all files, and each mark contains a time.
func (im *bulkImport) committed() {
	im.d.t.Helper()
	until(im.d.t, "everything to be committed", 5*importTime, func() bool {
		waits.Pace(500 * time.Millisecond) // each check reads the whole tree of the commit
		return im.uncommitted() == 0
	})
}

// uncommitted counts the files that are missing from the newest commit, or empty in it.
func (im *bulkImport) uncommitted() int {
	im.d.t.Helper()
	out, err := exec.Command("git", "-C", im.d.tree(), "ls-tree", "-r", "-l", "HEAD").Output()
	if err != nil {
		im.d.t.Fatal(err)
	}
	has := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		entry, path, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		size, _ := strconv.Atoi(strings.Fields(entry)[3])
		has[path] = size > 0
	}
	n := 0
	for _, file := range im.files {
		if !has[file] {
			n++
		}
	}
	return n
}

// commits counts the commits that record edits or the times in marks.
func (im *bulkImport) commits() int {
	out, err := exec.Command("git", "-C", im.d.tree(), "log", "--format=%s").Output()
	if err != nil {
		im.d.t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "edit") || strings.HasPrefix(line, "stamp") {
			n++
		}
	}
	return n
}

// runs reports whether health shows an import in progress. In the long form, some files must already be committed. The
// short form may have only a single commit.
func (im *bulkImport) runs() bool {
	resp, err := im.d.client.Get(im.d.url + "/health")
	if err != nil {
		im.d.t.Fatal(err)
	}
	defer resp.Body.Close()
	var r healthReport
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		im.d.t.Fatal(err)
	}
	return len(r.Detail) == 1 && r.Detail[0].Import != nil && (*faults != "long" || r.Detail[0].Import.Committed > 0)
}
