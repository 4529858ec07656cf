package writer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

var testKey = []byte("0123456789abcdef0123456789abcdef")

// crashed is a tree in which an operation on three files was interrupted.
type crashed struct {
	t    *testing.T
	tree *tree.Tree
	c    *tree.Changer
	j    *journal
	op   journalOp
	ws   []*tree.Write
}

func crash(t *testing.T) *crashed {
	t.Helper()
	tr, err := tree.Open(t.TempDir(), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	c := &crashed{t: t, tree: tr, c: tr.Changer(0)}
	t.Cleanup(c.c.Close)
	if c.j, err = openJournal(tr, testKey); err != nil {
		t.Fatal(err)
	}
	c.op = journalOp{Verb: "send", Agent: "Ann", ID: "m1"}
	for i, p := range []string{"messages/2026/a.md", "agents/Ann/outbox/2026/a.md", "agents/Bob/inbox/2026/a.md"} {
		w := &tree.Write{Path: p, Data: []byte(p), Sum: tree.SHA256([]byte(p))}
		c.must(c.c.Stage(w, stageName(1, i)))
		c.ws = append(c.ws, w)
		c.op.Files = append(c.op.Files, journalEntry{w.Path, w.Action, w.Sum, w.Staged, w.Was})
	}
	c.must(c.j.append(journalRecord{Group: 1, Ops: []journalOp{c.op}}))
	return c
}

func (c *crashed) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// after recovers the tree, and returns the tree's files and the operations that recovery reports as complete.
func (c *crashed) after() (files []string, ops []Op) {
	c.t.Helper()
	ops = c.recover()
	again := c.recover()
	if len(again) != len(ops) {
		c.t.Errorf("a second recovery finds %d operations, the first found %d", len(again), len(ops))
	}
	c.must(c.tree.Walk(c.t.Context(), "", func(p string, _ fs.DirEntry) error { files = append(files, p); return nil }))
	left, err := os.ReadDir(filepath.Join(c.tree.Dir(), tree.TmpDir))
	c.must(err)
	if len(left) > 0 {
		c.t.Errorf("%d files left in staging", len(left))
	}
	return files, ops
}

// recover recovers the tree, as a server does at startup.
func (c *crashed) recover() (ops []Op) {
	c.t.Helper()
	_, groups, err := recoverTree(c.tree, testKey, slog.New(slog.DiscardHandler))
	c.must(err)
	for _, g := range groups {
		ops = append(ops, g.ops...)
	}
	return ops
}

// forge replaces the journal with one record.
func (c *crashed) forge(key []byte, op journalOp) error {
	js, err := json.Marshal(journalRecord{Group: 1, Ops: []journalOp{op}})
	c.must(err)
	return os.WriteFile(filepath.Join(c.tree.Dir(), format.JournalFile), fmt.Appendf(nil, "%s %s .\n", journalMAC(key, js), js), 0o600)
}

// TestJournalRemoved checks that no record is lost if the journal file is removed while a server is running.
func TestJournalRemoved(t *testing.T) {
	t.Parallel()
	c := crash(t)
	c.must(os.Rename(filepath.Join(c.tree.Dir(), format.JournalFile), filepath.Join(c.tree.Dir(), format.JournalFile)+".old"))
	c.must(c.j.append(journalRecord{Group: 2}))
	c.must(c.c.Publish(c.ws[0]))
	if files, ops := c.after(); len(files) != 3 || len(ops) != 1 {
		t.Errorf("%d operations, files %v", len(ops), files)
	}
}

// TestJournalWrittenAnew checks that the journal contains exactly the uncommitted records, in order and with their
// dropped flags, both after a removed journal was replaced and after the next start.
func TestJournalWrittenAnew(t *testing.T) {
	t.Parallel()
	groups := func(c *crashed) (groups []uint64, flags string) {
		f, err := os.Open(filepath.Join(c.tree.Dir(), format.JournalFile))
		c.must(err)
		defer f.Close()
		for _, r := range readJournal(f, testKey) {
			groups, flags = append(groups, r.Group), flags+r.flags
		}
		return groups, flags
	}
	for name, harm := range map[string]func(c *crashed, file string) error{
		"removed": func(c *crashed, file string) error { return os.Remove(file) },
		"replaced": func(c *crashed, file string) error {
			return errors.Join(os.Rename(file, file+".old"), os.WriteFile(file, []byte("another\n"), 0o600))
		},
		"a link": func(c *crashed, file string) error {
			return errors.Join(os.Rename(file, file+".old"), os.Symlink("journal.old", file))
		},
		"with its folder": func(c *crashed, file string) error { return os.Rename(filepath.Dir(file), filepath.Dir(file)+".old") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := crash(t)
			for g := range uint64(5) {
				c.must(c.j.append(journalRecord{Group: 2 + g, Ops: []journalOp{c.op}}))
			}
			c.j.done(2)
			c.j.done(5)
			c.must(c.j.dropOps(3, []int{0}))
			c.must(harm(c, filepath.Join(c.tree.Dir(), format.JournalFile)))
			c.must(c.j.dropOps(4, []int{0})) // this detects the damage
			if is, flags := groups(c); !slices.Equal(is, []uint64{1, 3, 4, 6}) || flags != ".--." {
				t.Errorf("groups %d, flags %q", is, flags)
			}
			c.must(c.j.append(journalRecord{Group: 7, Ops: []journalOp{c.op}}))
			c.must(c.j.dropOps(7, []int{0}))
			c.must(c.j.dropOps(6, []int{0}))
			if is, flags := groups(c); !slices.Equal(is, []uint64{1, 3, 4, 6, 7}) || flags != ".----" {
				t.Errorf("after more records: groups %d, flags %q", is, flags)
			}
		})
	}
	c := crash(t)
	other := journalOp{Verb: "send", Agent: "Bob", Files: []journalEntry{{"messages/2026/b.md", tree.Create, tree.SHA256([]byte("b")), "y", ""}}}
	for g := range uint64(3) {
		c.must(c.j.append(journalRecord{Group: 2 + g, Ops: []journalOp{c.op, other}}))
	}
	c.j.done(2, 4)
	c.recover() // the second operation of group 3 was never staged
	if is, flags := groups(c); !slices.Equal(is, []uint64{1, 3}) || flags != ".." {
		t.Errorf("after the next start: groups %d, flags %q", is, flags)
	}
}

var allThree = []string{"agents/Ann/outbox/2026/a.md", "agents/Bob/inbox/2026/a.md", "messages/2026/a.md"}

// TestRecoverAtEveryRename checks that if the server is killed at any rename, the next start completes the operation.
func TestRecoverAtEveryRename(t *testing.T) {
	t.Parallel()
	for done := range 4 {
		c := crash(t)
		for _, w := range c.ws[:done] {
			c.must(c.c.Publish(w))
		}
		files, ops := c.after()
		if d := cmp.Diff(allThree, files); d != "" || len(ops) != 1 || !ops[0].Recovered {
			t.Errorf("%d renames done: %d operations, files %s", done, len(ops), d)
		}
	}
}

// TestRecoverQueued checks that a file in the queue of outgoing mail is created or dropped together with its message,
// no matter at which rename the server is killed. The file must not be passed to the history.
func TestRecoverQueued(t *testing.T) {
	t.Parallel()
	for renamed := range 3 {
		for _, back := range []bool{false, true} {
			c := crash(t)
			c.j.done(1)
			op, ws := journalOp{Verb: "send", Agent: "Bob"}, []*tree.Write{}
			for i, p := range []string{"messages/2026/b.md", format.QueueDir + "/b-0.json"} {
				w := &tree.Write{Path: p, Data: []byte(p), Sum: tree.SHA256([]byte(p))}
				c.must(c.c.Stage(w, stageName(2, i)))
				op.Files, ws = append(op.Files, journalEntry{w.Path, w.Action, w.Sum, w.Staged, w.Was}), append(ws, w)
			}
			c.must(c.j.append(journalRecord{Group: 2, Ops: []journalOp{op}}))
			for _, w := range ws[:renamed] {
				c.must(c.c.Publish(w))
			}
			if back {
				c.must(c.j.dropOps(2, []int{0}))
			}
			files, ops := c.after()
			queued, err := c.tree.Exists(ws[1].Path)
			c.must(err)
			if queued == back || len(files) == 1 == back || len(ops) == 1 == back {
				t.Errorf("%d renamed, undone %v: queued %v, files %v, %d operations", renamed, back, queued, files, len(ops))
			}
			if !back && !slices.Equal(ops[0].Paths, []string{"messages/2026/b.md"}) {
				t.Errorf("the history is told about %v", ops[0].Paths)
			}
		}
	}
}

// TestRecoverDrops checks that recovery removes every trace of an operation that never became durable or that was
// undone.
func TestRecoverDrops(t *testing.T) {
	t.Parallel()
	cases := map[string]func(c *crashed){
		"a staged file is short":   func(c *crashed) { c.must(os.Truncate(filepath.Join(c.tree.Dir(), tree.TmpDir, c.ws[1].Staged), 3)) },
		"a staged file is gone":    func(c *crashed) { c.must(os.Remove(filepath.Join(c.tree.Dir(), tree.TmpDir, c.ws[1].Staged))) },
		"the record is incomplete": func(c *crashed) { c.must(os.Truncate(filepath.Join(c.tree.Dir(), format.JournalFile), c.j.size-2)) },
		"the record is damaged": func(c *crashed) {
			c.must(os.WriteFile(filepath.Join(c.tree.Dir(), format.JournalFile), []byte("00000000 {}\n"), 0o600))
		},
		"the record is another store's": func(c *crashed) { c.must(c.forge([]byte("another key"), c.op)) },
		"undone, two renamed": func(c *crashed) {
			c.must(c.c.Publish(c.ws[0]))
			c.must(c.c.Publish(c.ws[2]))
			c.must(c.j.dropOps(1, []int{0}))
		},
	}
	for i, path := range []string{".git/hooks/pre-commit", "../x", ".mailtree/seen/Ann", "/etc/x", ".mailtree/queue/../x", ".mailtree/queue/ended/x"} {
		cases["the record lists "+path] = func(c *crashed) {
			bad := c.op
			bad.Files = slices.Clone(c.op.Files)
			bad.Files[i%3].Path = path
			c.must(c.forge(testKey, bad))
		}
	}
	for name, harm := range cases {
		t.Run(name, func(t *testing.T) {
			c := crash(t)
			harm(c)
			if files, ops := c.after(); len(files) > 0 || len(ops) > 0 {
				t.Errorf("%d operations, files %v", len(ops), files)
			}
		})
	}
}

// TestDropOnFullDisk checks that an operation is undone even if the journal cannot grow by a single byte. Only files
// that seem to belong to another program must be left alone.
func TestDropOnFullDisk(t *testing.T) {
	t.Parallel()
	c := crash(t)
	c.must(c.c.Publish(c.ws[0]))
	c.must(os.MkdirAll(filepath.Join(c.tree.Dir(), "agents/Bob/inbox/2026"), 0o700))
	c.must(os.WriteFile(filepath.Join(c.tree.Dir(), c.ws[2].Path), []byte("from a later operation"), 0o600))
	before := c.j.size
	c.must(c.j.dropOps(1, []int{0}))
	if fi, err := os.Stat(filepath.Join(c.tree.Dir(), format.JournalFile)); err != nil || fi.Size() != before {
		t.Errorf("the journal grew from %d bytes: %v %v", before, fi.Size(), err)
	}
	files, ops := c.after()
	if d := cmp.Diff(allThree[1:2], files); d != "" || len(ops) != 0 {
		t.Errorf("%d operations, files %s", len(ops), d)
	}
}

// TestRecoverTakesBack checks that recovery restores the earlier files if the server is killed after it marked a failed
// operation as dropped in the journal, but before it undid the operation. This must work for every kind of change.
func TestRecoverTakesBack(t *testing.T) {
	t.Parallel()
	for _, act := range []tree.Action{tree.Create, tree.Replace, tree.Remove} {
		for _, there := range []bool{false, true} {
			if act == tree.Create && there || act == tree.Remove && !there {
				continue
			}
			c := crash(t)
			file := filepath.Join(c.tree.Dir(), "claims/x.json")
			c.must(os.MkdirAll(filepath.Dir(file), 0o700))
			w := &tree.Write{Path: "claims/x.json", Action: act, Data: []byte("new"), Sum: tree.SHA256([]byte("new"))}
			if there {
				c.must(os.WriteFile(file, []byte("old"), 0o600))
				w.Was = tree.SHA256([]byte("old"))
			}
			if act == tree.Remove {
				w.Data, w.Sum = nil, tree.SHA256([]byte("old"))
			}
			c.must(c.c.Stage(w, "x"))
			c.must(c.j.append(journalRecord{Group: 2, Ops: []journalOp{{Verb: "claim", Files: []journalEntry{{w.Path, act, w.Sum, "x", w.Was}}}}}))
			c.must(c.c.Publish(w))
			c.must(c.j.dropOps(2, []int{0}))
			c.recover()
			data, err := os.ReadFile(file)
			if there != (err == nil) || there && string(data) != "old" {
				t.Errorf("action %d, file existed before %v: now %q, %v", act, there, data, err)
			}
		}
	}
}

// TestRecoverReplaceNotStaged checks that an operation changes nothing if the power fails before the new file is
// durable, no matter which file was at the path before.
func TestRecoverReplaceNotStaged(t *testing.T) {
	t.Parallel()
	for name, staged := range map[string]func(c *crashed) error{
		"empty":   func(c *crashed) error { return os.WriteFile(filepath.Join(c.tree.Dir(), tree.TmpDir, "x"), nil, 0o600) },
		"missing": func(c *crashed) error { return nil },
	} {
		c := crash(t)
		c.must(os.MkdirAll(filepath.Join(c.tree.Dir(), "claims"), 0o700))
		for file, text := range map[string]string{"claims/x.json": "old", "claims/x.released": "mark"} {
			c.must(os.WriteFile(filepath.Join(c.tree.Dir(), file), []byte(text), 0o600))
		}
		c.must(staged(c))
		c.must(c.j.append(journalRecord{Group: 2, Ops: []journalOp{{Verb: "claim", Agent: "Bob", Files: []journalEntry{
			{"claims/x.json", tree.Replace, tree.SHA256([]byte("new")), "x", tree.SHA256([]byte("old"))}, {"claims/x.released", tree.Remove, tree.SHA256([]byte("mark")), "y", ""}}}}}))
		files, ops := c.after()
		want := []string{
			"agents/Ann/outbox/2026/a.md", "agents/Bob/inbox/2026/a.md", "claims/x.json", "claims/x.released", "messages/2026/a.md",
		}
		if d := cmp.Diff(want, files); d != "" || len(ops) != 1 {
			t.Errorf("%s: %d operations, files %s", name, len(ops), d)
		}
	}
}

// TestRecoverForgetsCommitted checks that recovery does not repeat operations that the journal marks as committed.
// Recovery must keep the other operations, because there may be another crash.
func TestRecoverForgetsCommitted(t *testing.T) {
	t.Parallel()
	c := crash(t)
	op := journalOp{Verb: "send", Agent: "Bob", Files: []journalEntry{{"messages/2026/b.md", tree.Create, tree.SHA256([]byte("b")), "y", ""}}}
	c.must(c.c.Stage(&tree.Write{Path: "messages/2026/b.md", Data: []byte("b")}, "y"))
	c.must(c.j.append(journalRecord{Group: 2, Ops: []journalOp{op}}))
	c.j.done(1)
	files, ops := c.after()
	if d := cmp.Diff([]string{"messages/2026/b.md"}, files); d != "" || len(ops) != 1 || ops[0].Agent != "Bob" {
		t.Errorf("%+v, files %s", ops, d)
	}
}

// TestRecoverMerge checks that after an interrupted run, a recovered operation still merges its commit.
func TestRecoverMerge(t *testing.T) {
	t.Parallel()
	c := crash(t)
	c.op.Merges = Merge{Commit: "c", More: true, Onto: "o"}
	c.must(c.forge(testKey, c.op))
	if _, ops := c.after(); len(ops) != 1 || ops[0].Merges != c.op.Merges {
		t.Errorf("%+v", ops)
	}
}

// TestRecoverKeepsEdits checks that recovery does not revert a user's change to a file, or a user's deletion of a file,
// that was made after the rename.
func TestRecoverKeepsEdits(t *testing.T) {
	t.Parallel()
	c := crash(t)
	for _, w := range c.ws {
		c.must(c.c.Publish(w))
	}
	edited := filepath.Join(c.tree.Dir(), "messages/2026/a.md")
	c.must(os.WriteFile(edited, []byte("by hand"), 0o600))
	c.must(os.Remove(filepath.Join(c.tree.Dir(), "agents/Bob/inbox/2026/a.md")))
	files, _ := c.after()
	if d := cmp.Diff([]string{"agents/Ann/outbox/2026/a.md", "messages/2026/a.md"}, files); d != "" {
		t.Error(d)
	}
	if data, _ := os.ReadFile(edited); string(data) != "by hand" {
		t.Errorf("the edit was lost: %s", data)
	}
}

// TestUndo checks that Undo restores the earlier state after any action.
func TestUndo(t *testing.T) {
	t.Parallel()
	for _, act := range []tree.Action{tree.Create, tree.Replace, tree.Remove} {
		for _, there := range []bool{false, true} {
			if act == tree.Create && there {
				continue
			}
			c := crash(t)
			file := filepath.Join(c.tree.Dir(), "claims/x.json")
			c.must(os.MkdirAll(filepath.Dir(file), 0o700))
			if there {
				c.must(os.WriteFile(file, []byte("old"), 0o600))
			}
			w := &tree.Write{Path: "claims/x.json", Action: act, Data: []byte("new"), Sum: tree.SHA256([]byte("new"))}
			if there {
				w.Was = tree.SHA256([]byte("old"))
			}
			if act == tree.Remove {
				w.Sum = tree.SHA256([]byte("old"))
			}
			c.must(c.c.Stage(w, "x"))
			c.must(c.c.Publish(w))
			if data, err := os.ReadFile(file); act != tree.Remove && string(data) != "new" || act == tree.Remove && err == nil {
				t.Errorf("action %d: not done: %q %v", act, data, err)
			}
			c.must(c.c.Undo(w))
			data, err := os.ReadFile(file)
			if there != (err == nil) || there && string(data) != "old" {
				t.Errorf("action %d, file existed before %v: now %q, %v", act, there, data, err)
			}
			if _, err := os.Lstat(filepath.Join(c.tree.Dir(), tree.TmpDir, "x")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("action %d, file existed before %v: left in staging", act, there)
			}
		}
	}
}

// TestCreateIsExclusive checks that if a file already exists at the path of a new file, the existing file is kept.
func TestCreateIsExclusive(t *testing.T) {
	t.Parallel()
	c := crash(t)
	c.must(os.WriteFile(filepath.Join(c.tree.Dir(), c.ws[0].Path), []byte("first"), 0o600))
	if err := c.c.Publish(c.ws[0]); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want fs.ErrExist", err)
	}
	if data, _ := os.ReadFile(filepath.Join(c.tree.Dir(), c.ws[0].Path)); string(data) != "first" {
		t.Errorf("overwritten: %q", data)
	}
}

// TestLinksAreNotFollowed checks that neither writes nor reads follow a link, and that reading a FIFO does not block
// (invariant I8).
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	c := crash(t)
	outside := t.TempDir()
	c.must(os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	c.must(os.MkdirAll(filepath.Join(c.tree.Dir(), "agents/Eve"), 0o700))
	c.must(os.Symlink(outside, filepath.Join(c.tree.Dir(), "agents/Eve/inbox")))
	c.must(os.Symlink("../Bob", filepath.Join(c.tree.Dir(), "agents/Eve/outbox")))
	for _, p := range []string{"agents/Eve/inbox/secret", "agents/Eve/outbox/x", "agents/Eve/inbox"} {
		if data, _, err := c.tree.Read(p, 100); err == nil {
			t.Errorf("%s was read: %q", p, data)
		}
		if err := c.c.Stage(&tree.Write{Path: p + "/new/x.md"}, "l"); err == nil {
			t.Errorf("a folder was created behind %s", p)
		}
	}
	if left, _ := os.ReadDir(outside); len(left) != 1 {
		t.Errorf("written outside: %v", left)
	}
	c.must(mkfifo(filepath.Join(c.tree.Dir(), "messages/fifo.md")))
	if _, _, err := c.tree.Read("messages/fifo.md", 100); err == nil {
		t.Error("a FIFO was read")
	}
}
