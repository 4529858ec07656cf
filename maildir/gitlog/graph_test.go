package gitlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"mailtree/maildir/format"
	"mailtree/maildir/history"
)

// graphed is a tree with a history of every kind of commit: operations, a removed message, edits, a
// person's commits and a merge.
func graphed(t *testing.T) *repoTree {
	tr := newTree(t, Config{External: true})
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	tr.log.cfg.Now = func() time.Time { at = at.Add(time.Second); return at }
	for _, id := range []string{"m1", "m2", "m3"} {
		tr.send(id, "messages/2026/01/01/"+id+".md", "agents/B/inbox/2026/01/01/"+id+".md")
		tr.flush()
	}
	tr.write("agents/C/notes.txt", "by hand\n")
	tr.log.Edited([]string{"agents/C/notes.txt"})
	tr.flush()
	tr.git("checkout", "-qb", "other", "HEAD~2")
	tr.write("agents/D/theirs.txt", "1\n")
	tr.git("add", "agents/D/theirs.txt")
	tr.git("commit", "-qm", "theirs")
	tr.git("checkout", "-q", "-")
	tr.git("merge", "-q", "--no-ff", "--no-edit", "other")
	return tr
}

// extend brings the graph level, as keepGraph does, and returns the end that it would keep.
func (t *repoTree) extend(end graphEnd) graphEnd {
	t.Helper()
	t.check(t.log.extendGraph(context.Background(), &end))
	return end
}

func (t *repoTree) graph() *graph { return readGraph(t.path(".git/" + graphFile)) }

// searches are queries by each kind of key. Their answers may not depend on the graph.
func (t *repoTree) searches() string {
	t.Helper()
	var all strings.Builder
	below := func(folder string) history.Query {
		return history.Query{
			Keys:   []string{folder},
			File:   func(path string, _ bool) bool { return strings.HasPrefix(path, folder+"/") },
			Folder: func(string) bool { return true },
		}
	}
	message := everything()
	message.Keys = []string{"m2"}
	message.Op = func(op history.RecordedOp) bool { return op.ID == "m2" }
	message.File = func(path string, _ bool) bool { return format.Locate(path).ID == "m2" }
	agent := everything()
	agent.Keys = []string{"A"}
	agent.Op = func(op history.RecordedOp) bool { return op.Agent == "A" }
	agent.File = func(path string, operations bool) bool { return operations || format.Locate(path).Agent == "A" }
	file := everything()
	file.Keys = []string{"agents/D/theirs.txt"}
	file.File = func(path string, _ bool) bool { return path == "agents/D/theirs.txt" }
	folders := []history.Query{below("agents"), below("agents/B/inbox/2026"), below("none")}
	for _, q := range append(folders, everything(), message, agent, file) {
		fmt.Fprintf(&all, "%s:\n%s\n", q.Keys, strings.Join(t.walk(q), "\n"))
	}
	return all.String()
}

// TestGraph: searches answer the same with a graph as without, whatever became of it: part of it is
// missing, bytes are wrong, it is of another history, or the history was rewritten since; and the
// graph is level again once it was extended.
func TestGraph(t *testing.T) {
	t.Parallel()
	tr := graphed(t)
	want := tr.searches()
	if !strings.Contains(want, "[m2]:\nsend A m2") || !strings.Contains(want, "[none]:\n\n") || strings.Count(want, "theirs") < 3 {
		t.Fatal(want)
	}
	file := tr.path(".git/" + graphFile)
	end := tr.extend(graphEnd{})
	count := fmt.Sprint(end.records)
	tr.equal("records", count, tr.git("rev-list", "--count", "HEAD"))
	whole, err := os.ReadFile(file)
	tr.check(err)
	tr.equal("with the graph", tr.searches(), want)
	for _, n := range []int{0, 1, 100, len(whole) / 2, len(whole) - 1} {
		tr.check(os.WriteFile(file, whole[:n], 0o600))
		tr.equal(fmt.Sprint("cut to ", n), tr.searches(), want)
		g := tr.graph()
		tr.extend(g.endAfter(g.len()))
		tr.equal(fmt.Sprint("records again after ", n), fmt.Sprint(tr.graph().len()), count)
		tr.equal(fmt.Sprint("extended after ", n), tr.searches(), want)
	}
	for at := range whole {
		if at%7 != 0 {
			continue
		}
		bad := bytes.Clone(whole)
		bad[at] ^= 0x10
		tr.check(os.WriteFile(file, bad, 0o600))
		if g := tr.graph(); g.len() >= end.records {
			t.Fatalf("byte %d is wrong, and all of %d records are believed", at, g.len())
		}
	}
	tr.equal("wrong", tr.searches(), want)
	tr.check(os.Remove(file))
	tr.equal("removed", tr.searches(), want)

	other := newTree(t, Config{})
	other.send("x", "x")
	other.flush()
	other.extend(graphEnd{})
	foreign, err := os.ReadFile(other.path(".git/" + graphFile))
	tr.check(err)
	tr.check(os.WriteFile(file, foreign, 0o600))
	tr.equal("of another history", tr.searches(), want)
	g := tr.graph()
	tr.extend(g.endAfter(g.len()))
	tr.equal("records in place of another history", fmt.Sprint(tr.graph().len()), count)
}

// TestGraphRewritten: after commits were taken back or replaced, searches do not tell them, and the
// graph drops them.
func TestGraphRewritten(t *testing.T) {
	t.Parallel()
	tr := graphed(t)
	end := tr.extend(graphEnd{})
	for _, command := range [][]string{
		{"reset", "-q", "--hard", "HEAD~1"},
		{"commit", "-q", "--amend", "-m", "amended"},
		{"reset", "-q", "--hard", "HEAD~2"},
	} {
		tr.git(command...)
		got := tr.searches()
		file := tr.path(".git/" + graphFile)
		kept, err := os.ReadFile(file)
		tr.check(err)
		tr.check(os.Remove(file))
		tr.equal(fmt.Sprint(command), got, tr.searches())
		tr.check(os.WriteFile(file, kept, 0o600))
		end = tr.extend(end)
		tr.equal(fmt.Sprint("graph after ", command), fmt.Sprint(tr.graph().len()), tr.git("rev-list", "--count", "HEAD"))
	}
}

// TestGraphKept: Run keeps the graph level with what is committed.
func TestGraphKept(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.run()
	for i := range 3 {
		tr.send(fmt.Sprint("m", i), fmt.Sprint("messages/m", i, ".md"))
		tr.flush()
		tr.until("the graph has the commit", func() bool {
			g := tr.graph()
			return g.len() > 0 && g.name(g.len()-1).String() == tr.git("rev-parse", "HEAD")
		})
	}
	tr.equal("records", fmt.Sprint(tr.graph().len()), "4")
}

// TestGraphGone: a file that was removed while the graph is kept is told, so that it is made again.
func TestGraphGone(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	end := tr.extend(graphEnd{})
	tr.check(os.Remove(tr.path(".git/" + graphFile)))
	tr.send("m", "m")
	tr.flush()
	if err := tr.log.extendGraph(t.Context(), &end); !errors.Is(err, errGraphCut) {
		t.Errorf("%v", err)
	}
}

// TestGraphRemoved: the commit that removed a message is found by its thread.
func TestGraphRemoved(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	m := format.Message{ID: "msg_1", ThreadID: "T-1", From: "A", To: []string{"B"}, Subject: "s", Created: time.Unix(1760000000, 0)}
	tr.write("messages/msg_1.md", string(format.FormatMessage(&m)))
	tr.git("add", "messages")
	tr.git("commit", "-qm", "one")
	tr.git("rm", "-q", "messages/msg_1.md")
	tr.git("commit", "-qm", "two")
	tr.extend(graphEnd{})
	g, keys := tr.graph(), newKeySet([]string{history.RemovedFrom("T-1")})
	for i := range g.len() {
		if got, want := g.touches(i, keys), i == g.len()-1; got != want {
			t.Errorf("commit %d: %v, want %v", i, got, want)
		}
	}
}

// TestGraphWrongFile: what somebody put in the place of the graph is neither waited for nor written.
func TestGraphWrongFile(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	file, other := tr.path(".git/"+graphFile), tr.path("other")
	tr.check(os.WriteFile(other, []byte("kept"), 0o600))
	for name, put := range map[string]func() error{
		"link": func() error { return os.Symlink(other, file) },
		"FIFO": func() error { return unix.Mkfifo(file, 0o600) },
	} {
		tr.check(put())
		if err := tr.log.extendGraph(t.Context(), &graphEnd{}); err == nil {
			t.Errorf("%s: written", name)
		}
		tr.check(os.Remove(file))
	}
	if data, err := os.ReadFile(other); string(data) != "kept" {
		t.Errorf("%q, %v", data, err)
	}
}
