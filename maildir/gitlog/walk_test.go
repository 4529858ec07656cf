package gitlog

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mailtree/maildir/history"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

var (
	walked = flag.Int("gitlog.walked", 100000, "number of commits in BenchmarkWalk")
)

func everything() history.Query {
	return history.Query{
		File: func(string, bool) bool { return true },
	}
}

// walk returns the results of a Walk, with one line for each commit: its operations or its author, and its files.
func (t *repoTree) walk(q history.Query) (all []string) {
	t.Helper()
	t.check(t.log.Walk(context.Background(), q, func(r *history.Revision) error {
		var line []string
		for _, op := range r.Ops {
			line = append(line, op.Verb+" "+op.Agent+" "+op.ID+" ["+op.Summary+"]")
		}
		if len(r.Ops) == 0 {
			line = append(line, fmt.Sprintf("%s edit=%v %s", r.Author, r.Edit, r.Subject))
		}
		for _, f := range r.Files {
			line = append(line, f.Op+" "+f.Path)
		}
		all = append(all, strings.Join(line, ", "))
		return nil
	}))
	return all
}

// TestWalk checks a walk over an agent's operations, an edit and a user's commit. One operation has not been committed
// when the walk begins. It also checks a query for one operation.
func TestWalk(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true, Delay: time.Hour, Quiet: time.Hour})
	at := time.Unix(1760000000, 0)
	tr.log.cfg.Now = func() time.Time { at = at.Add(time.Second); return at }
	tr.send("m1", "messages/m1.md")
	tr.flush()
	tr.send("m2", "messages/m2.md")
	tr.send("m3", "messages/m3.md")
	tr.flush()
	tr.write("notes.md", "one\n")
	tr.log.RecordEdits([]string{"notes.md"})
	tr.flush()
	tr.git("-c", "user.name=P", "rm", "-q", "notes.md")
	tr.git("commit", "-qm", "tidy up")
	tr.send("m4", "messages/m4.md") // this operation is not committed before the walk
	tr.equal("everything", strings.Join(tr.walk(everything()), "\n"), `send A m4 [A -> B: about m4], added messages/m4.md
Person edit=false tidy up, removed notes.md
mailtree edit=true edit: notes.md, added notes.md
send A m3 [A -> B: about m3], added messages/m3.md
send A m2 [A -> B: about m2], added messages/m2.md
send A m1 [A -> B: about m1], added messages/m1.md
project   [-> B: about], added .gitignore`)

	q := everything()
	q.Op = func(op history.RecordedOp) bool { return op.ID == "m3" }
	q.File = func(path string, _ bool) bool { return strings.Contains(path, "m3") }
	tr.equal("m3", strings.Join(tr.walk(q), "\n"), "send A m3 [A -> B: about m3], added messages/m3.md")
}

// TestWalkMerge checks that the commits on both sides of a merge are listed once, and that the merge commit is listed
// only if it differs from both of its parents.
func TestWalkMerge(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.git("checkout", "-qb", "other")
	tr.write("theirs", "1\n")
	tr.git("add", "theirs")
	tr.git("commit", "-qm", "theirs")
	tr.git("checkout", "-q", "-")
	tr.write("ours", "1\n")
	tr.git("add", "ours")
	tr.git("commit", "-qm", "ours")
	tr.git("merge", "-q", "--no-commit", "other")
	tr.write("third", "1\n")
	tr.git("add", "third")
	tr.git("commit", "-qm", "merged")
	got := tr.walk(everything())
	slices.Sort(got)
	tr.equal("merge", strings.Join(got, "\n"), `Person edit=false merged, added third
Person edit=false ours, added ours
Person edit=false theirs, added theirs
project   [-> B: about], added .gitignore`)
}

// TestRecordedOps checks that the message of a commit with several operations is parsed correctly, even if a summary
// contains text that looks like a trailer.
func TestRecordedOps(t *testing.T) {
	t.Parallel()
	want := []history.RecordedOp{
		{Verb: "send", Agent: "A", ID: "m1", Door: "http", Summary: "A -> B: Mail-Op: send"},
		{Verb: "sweep", Summary: "claims that ended"},
		{Verb: "read", Agent: "B", ID: "m1"},
	}
	var ops []operation
	for _, op := range want {
		ops = append(ops, operation{Op: writer.Op{
			Verb:    op.Verb,
			Agent:   op.Agent,
			ID:      op.ID,
			Door:    op.Door,
			Summary: op.Summary,
		}})
	}
	if got := recordedOps(opsMessage(ops)); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := recordedOps(opsMessage(ops[:1])); !slices.Equal(got, want[:1]) {
		t.Errorf("%+v, want %+v", got, want[:1])
	}
	for _, m := range []string{"", "edit: a\n\nMail-Op: edit\n", "by hand\n\nbody", "Mail-Op: send\n"} {
		if got := recordedOps(m); got != nil {
			t.Errorf("%q: %+v", m, got)
		}
	}
}

// TestPatch checks that the patch for a changed line is the same as in Git, and that the patch for a binary file
// contains no lines.
func TestPatch(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.write("a", "1\n2\n3\n4\n5\n6\n7\n8\n")
	tr.write("b", "\x00")
	tr.git("add", "a", "b")
	tr.git("commit", "-qm", "one")
	tr.write("a", "1\n2\n3\n4\nfive\n6\n7\n8\n")
	tr.write("b", "\x00\x00")
	tr.git("commit", "-qam", "two")
	var got string
	enough := errors.New("enough")
	err := tr.log.Walk(context.Background(), everything(), func(r *history.Revision) error {
		for _, f := range r.Files {
			patch, err := f.Patch()
			tr.check(err)
			got += patch
		}
		return enough
	})
	if !errors.Is(err, enough) {
		t.Fatal(err)
	}
	if want := tr.git("show", "--format=", "--full-index", "HEAD") + "\n"; got != want {
		t.Errorf("patch:\n%s\nGit's patch:\n%s", got, want)
	}
}

// TestAsOf checks that AsOf returns the files of a folder at a given time, and at a commit that is specified by a
// prefix of its name.
func TestAsOf(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	at := time.Unix(2000000000, 0)
	tr.log.cfg.Now = func() time.Time { return at }
	tr.send("m1", "box/m1", "m1")
	tr.flush()
	one := tr.git("rev-parse", "HEAD")
	at = at.Add(time.Hour)
	tr.send("m2", "box/m2")
	tr.flush()
	for _, m := range []struct {
		history.Moment
		want string
	}{
		{history.Moment{At: at.Add(-time.Minute)}, "box/m1 text of m1\n"},
		{history.Moment{At: at}, "box/m1 text of m1\nbox/m2 text of m2\n"},
		{history.Moment{Commit: one[:9]}, "box/m1 text of m1\n"},
		{history.Moment{Commit: one}, "box/m1 text of m1\n"},
	} {
		got := ""
		tr.check(tr.log.AsOf(context.Background(), m.Moment, "box", func(_ history.Commit, files []history.OldFile) error {
			for _, f := range files {
				data, err := f.Content()
				tr.check(err)
				got += f.Path + " " + string(data)
			}
			return nil
		}))
		tr.equal(fmt.Sprint(m.Moment), got, m.want)
	}
	for _, m := range []history.Moment{{At: time.Unix(1, 0)}, {Commit: strings.Repeat("0", 40)}, {Commit: "zz"}} {
		if err := tr.log.AsOf(context.Background(), m, "box", nil); !errors.Is(err, refusal.ErrNotFound) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

// BenchmarkWalk measures the time until the first entry is found in a very long history that has a commit graph. The
// entry is at the end, in the middle or at the beginning of the history. For comparison, it measures git log for the
// same path. It also measures the creation of the commit graph.
func BenchmarkWalk(b *testing.B) {
	dir := longHistory(b)
	l, err := Open(Config{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("make-graph", func(b *testing.B) {
		for b.Loop() {
			if err := os.RemoveAll(filepath.Join(dir, ".git/objects/info/commit-graph")); err != nil {
				b.Fatal(err)
			}
			repo, err := l.openRepository(b.Context(), newMemory())
			if err == nil {
				err = repo.pack()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, i := range map[string]int{"near": *walked - 1, "middle": *walked / 2, "far": 0} {
		day, id := longHistoryID(i)
		folder := fmt.Sprintf("agents/A%d/inbox%s", (i*7+3)%50, strings.TrimSuffix(day, "/"))
		of := map[string]history.Query{
			"message": {
				Op:   func(op history.RecordedOp) bool { return op.ID == id },
				File: func(path string, _ bool) bool { return strings.Contains(path, id) },
			},
			"folder": {
				Path: folder,
				File: func(path string, _ bool) bool { return strings.HasPrefix(path, folder+"/") },
			},
			"agent": {
				Op:   func(op history.RecordedOp) bool { return op.Agent == fmt.Sprintf("only%d", i) },
				File: func(string, bool) bool { return true },
			},
		}
		for what, q := range of {
			b.Run(what+"/"+name, func(b *testing.B) { benchmarkFirst(b, l, q) })
		}
		b.Run("thread/"+name, func(b *testing.B) { // a query for a thread first searches for removed messages
			for b.Loop() {
				if err := l.Walk(b.Context(), history.OfRemoved(), func(*history.Revision) error { return nil }); err != nil {
					b.Fatal(err)
				}
				if err := l.Walk(b.Context(), of["message"], func(*history.Revision) error { return fs.SkipAll }); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("as-of/"+name, func(b *testing.B) {
			then := history.Moment{At: time.Unix(1735689600+int64(i)*300, 0)}
			for b.Loop() {
				err := l.AsOf(b.Context(), then, path.Dir(path.Dir(path.Dir(folder))), func(_ history.Commit, files []history.OldFile) error {
					if len(files) == 0 {
						return errors.New("nothing was there")
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("folder/"+name+"/git", func(b *testing.B) {
			for b.Loop() {
				c := exec.Command("git", "log", "-n", "20", "--", folder)
				c.Dir = dir
				if out, err := c.Output(); err != nil || len(out) == 0 {
					b.Fatal(err, len(out))
				}
			}
		})
	}
}

// benchmarkFirst measures the time until the first entry is found.
func benchmarkFirst(b *testing.B, l *Log, q history.Query) {
	enough := errors.New("enough")
	for b.Loop() {
		if err := l.Walk(b.Context(), q, func(*history.Revision) error { return enough }); !errors.Is(err, enough) {
			b.Fatal(err)
		}
	}
}

// longHistoryID returns the folder for the day of the i-th message in longHistory, and the message's id.
func longHistoryID(i int) (day, id string) {
	at := time.Unix(1735689600+int64(i)*300, 0).UTC()
	return at.Format("/2006/01/02/"), fmt.Sprintf("msg_%s_%016x", at.Format("20060102"), i)
}

// longHistory creates a repository that contains many messages between fifty agents, with one commit per message. The
// senders of the first, the middle and the last message send no other messages.
func longHistory(b *testing.B) (dir string) {
	dir = b.TempDir()
	c := exec.Command("git", "init", "-q", "-b", "main", dir)
	if err := c.Run(); err != nil {
		b.Skip(err)
	}
	var in strings.Builder
	for i := range *walked {
		day, id := longHistoryID(i)
		from := fmt.Sprintf("A%d", i%50)
		if i == 0 || i == *walked/2 || i == *walked-1 {
			from = fmt.Sprintf("only%d", i)
		}
		message := fmt.Sprintf("send: %s -> B: Plan\n\nMail-Op: send\nMail-Id: %s\nAgent: %s\n", from, id, from)
		fmt.Fprintf(&in, "commit refs/heads/main\ncommitter mailtree <m@x> %d +0000\ndata %d\n%s", 1735689600+i*300, len(message), message)
		for _, p := range []string{"messages", "agents/" + from + "/outbox", fmt.Sprintf("agents/A%d/inbox", (i*7+3)%50)} {
			fmt.Fprintf(&in, "M 100644 inline %s%s%s.md\ndata %d\n%s\n", p, day, id, len(id), id)
		}
	}
	c = exec.Command("git", "fast-import", "--quiet")
	c.Dir, c.Stdin = dir, strings.NewReader(in.String())
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	if err := os.MkdirAll(filepath.Join(dir, ".mailtree"), 0o700); err != nil {
		b.Fatal(err)
	}
	return dir
}
