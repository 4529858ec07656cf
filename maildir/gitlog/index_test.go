package gitlog

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

// TestIndexIsStreamed checks that a commit with a very large index does not read all index entries into memory. The
// test is not parallel, because it counts allocations.
func TestIndexIsStreamed(t *testing.T) {
	tr := newTree(t, Config{})
	const n = 200000
	size := makeIndex(t, tr.path(".git/index"), n)
	for i := range 2 {
		tr.send(fmt.Sprint("m", i), fmt.Sprint("messages/m", i))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		tr.flush()
		runtime.ReadMemStats(&after)
		if spent := after.TotalAlloc - before.TotalAlloc; spent > uint64(size)/4 {
			t.Errorf("%d bytes allocated, the index has %d", spent, size)
		}
	}
	out := strings.Split(tr.git("ls-files", "--", ":!agents"), "\n")
	tr.equal("new entries", strings.Join(out, " "), ".gitignore messages/m0 messages/m1") // m0 was restored: see heal
	if all := strings.Count(tr.git("ls-files"), "\n") + 1; all != n+3 {
		t.Errorf("%d entries", all)
	}
}

// TestIndexAsGitWrites checks that the new index is the same as the index that git writes. It covers both versions,
// names of any length, shared prefixes, folders that are replaced by files and vice versa, and entries that are only
// in the index.
func TestIndexAsGitWrites(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2", "3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, Config{})
			if version == "3" { // git writes version 3 only if an entry needs it
				tr.git("update-index", "--skip-worktree", ".gitignore")
			}
			long := strings.Repeat(strings.Repeat("d", 200)+"/", 15) // too long for the index's length field
			names := []string{"a", "a.b/x", "a-b", "dir/x", "dir/y/z", "file", "z", long + strings.Repeat("n", 250), long + "n", strings.Repeat(strings.Repeat("e", 250)+"/", 15) + strings.Repeat("f", 200)}
			tr.send("m1", names...)
			tr.flush()
			for _, n := range names[:3] {
				tr.write(n+".staged", "only in the index")
				tr.git("add", n+".staged")
			}
			tr.git("update-index", "--add", "--cacheinfo", "100644,"+tr.git("rev-parse", "HEAD:a")+",a.b/w")
			tr.write("staged", "by hand") // one of our paths; in the index but not in HEAD
			tr.git("add", "staged")
			tr.check(os.RemoveAll(tr.path("dir")))
			tr.check(os.Remove(tr.path("file")))
			tr.send("m2", "dir", "file/inside", "0", "zz", long+"m", "staged", "a")
			tr.flush()
			ours := tr.git("ls-files", "-s")
			tr.equal("version", fmt.Sprint(tr.file(".git/index")[7]), version)
			tr.check(os.Remove(tr.path(".git/index")))
			tr.git("read-tree", "HEAD")
			for _, n := range names[:3] {
				tr.git("add", n+".staged")
			}
			tr.git("update-index", "--add", "--cacheinfo", "100644,"+tr.git("rev-parse", "HEAD~:a")+",a.b/w")
			tr.equal("entries", ours, tr.git("ls-files", "-s"))
		})
	}
}

// TestIndexForms checks that a version 4 index, a split index and a sparse index work. Staged files must stay staged,
// and files that a sparse checkout omits must not be treated as removed.
func TestIndexForms(t *testing.T) {
	t.Parallel()
	for name, form := range map[string][]string{
		"version 4": {"update-index", "--index-version", "4"},
		"split":     {"update-index", "--split-index"},
		"sparse":    {"sparse-checkout", "set", "--cone", "--sparse-index", "messages"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, Config{External: true})
			tr.send("m0", "messages/m0", "agents/A/x", "agents/B/y")
			tr.flush()
			tr.git(form...)
			tr.write("messages/staged", "by hand")
			tr.git("add", "messages/staged")
			tr.log.RecordEdits([]string{"agents"})
			tr.send("m1", "messages/m1")
			tr.flush()
			tr.equal("status", tr.git("status", "--porcelain"), "A  messages/staged")
			tr.equal("ids", strings.Join(tr.ids(), " "), "m0 m1")
			tr.equal("files", tr.git("ls-tree", "-r", "--name-only", "HEAD"), ".gitignore\nagents/A/x\nagents/B/y\nmessages/m0\nmessages/m1")
			tr.equal("fsck", tr.git("fsck", "--strict", "--no-dangling"), "")
		})
	}
}

func (t *repoTree) file(name string) []byte {
	t.Helper()
	b, err := os.ReadFile(t.path(name))
	t.check(err)
	return b
}

// TestDamagedIndex checks that a damaged index is reported, and that it never gets a valid checksum, regardless of
// which program wrote the index.
func TestDamagedIndex(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.send("m1", "messages/m1", "messages/m2")
	tr.flush()
	tr.git("update-index", "--force-write-index")
	good := tr.file(".git/index")
	name := bytes.Index(good, []byte("messages/m1"))
	for what, damage := range map[string]func(b []byte) []byte{
		"a hash":        func(b []byte) []byte { b[name-10]++; return b },
		"short":         func(b []byte) []byte { return b[:name+3] },
		"no entries":    func(b []byte) []byte { return b[:12] },
		"a high count":  func(b []byte) []byte { b[8]++; return b },
		"a long name":   func(b []byte) []byte { b[name-2], b[name-1] = 0x0f, 0xff; return b },
		"an extension":  func(b []byte) []byte { return append(b[:len(b)-20], "TREE\xff\xff\xff\xff01234567890123456789"...) },
		"a new version": func(b []byte) []byte { b[7] = 9; return b },
		"all zeros":     func(b []byte) []byte { return make([]byte, len(b)) },
	} {
		tr.check(os.WriteFile(tr.path(".git/index"), damage(bytes.Clone(good)), 0o644))
		tr.send("x", "messages/x")
		if err := tr.log.Flush(context.Background()); err == nil {
			t.Errorf("%s: committed", what)
		}
		if tr.log.State().Pending > 0 {
			tr.state("waiting", "Remove .git/index")
		}
		tr.check(os.WriteFile(tr.path(".git/index"), good, 0o644))
		tr.flush()
		good = tr.file(".git/index")
		name = bytes.Index(good, []byte("messages/m1"))
	}
	tr.sound()
}

// TestCatchUpBesideAModule checks that catchUp does not enter a submodule, but finds the changed files next to it.
func TestCatchUpBesideAModule(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.send("m1", "m1")
	tr.flush()
	tr.write("sub/file", "of the module")
	tr.git("update-index", "--add", "--cacheinfo", "160000,"+tr.git("rev-parse", "HEAD")+",sub")
	tr.git("commit", "-qm", "module")
	tr.write("sub.txt", "x")
	tr.write("sub-x/y", "x")
	tr.write("sub0", "x")
	tr.reopen(Config{External: true})
	tr.caughtUp()
	tr.equal("found", tr.git("show", "--name-only", "--format="), "sub-x/y\nsub.txt\nsub0")
}
