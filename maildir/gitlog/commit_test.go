package gitlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"mailtree/maildir/gitlog/reflock"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

func TestCommit(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.send("m1", "messages/2025/10/23/m1.md", "agents/A/outbox/2025/10/23/m1.md", "agents/B/inbox/2025/10/23/m1.md")
	tr.flush()
	tr.equal("subject", tr.git("log", "-1", "--format=%s"), "send: A -> B: about m1")
	tr.equal("people", tr.git("log", "-1", "--format=%an <%ae> %at, %cn <%ce>"), "A <A@mailtree.local> 1760000000, mailtree <mailtree@mailtree.local>")
	tr.equal("trailers", tr.git("log", "-1", "--format=%(trailers)"), "Mail-Op: send\nMail-Id: m1\nAgent: A")
	tr.equal("files", tr.git("show", "--name-status", "--format="),
		"A\tagents/A/outbox/2025/10/23/m1.md\nA\tagents/B/inbox/2025/10/23/m1.md\nA\tmessages/2025/10/23/m1.md")
	tr.equal("reflog", tr.git("reflog", "-1", "--format=%gs"), "commit: send: A -> B: about m1")
	tr.equal("branch's reflog", tr.git("reflog", "show", "-1", "--format=%H %gs", "main"), tr.git("rev-parse", "HEAD")+" commit: send: A -> B: about m1")
	tr.sound()
	s := tr.log.State()
	if s.Mode != "committing" || s.Pending != 0 || s.LastCommit.IsZero() {
		t.Errorf("state %+v", s)
	}
}

func TestHostileNames(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	names := []string{"with space.md", "new\nline.md", `quo"te'.md`, "\xff\xfe not utf8.md", "ünï.md", "a.b/x", "a/x", "a-b/x", "a0", "-dash", "tab\t", strings.Repeat("n", 250), ".#lock~"}
	long := strings.Repeat(strings.Repeat("d", 100)+"/", 12) + strings.Repeat("n", 200)
	all := append(slices.Clone(names), strings.Repeat("dir/", 300)+"deep", long)
	for _, n := range all {
		tr.write(n, n)
	}
	tr.write(".git/evil", "x")
	tr.write(".mailtree/evil", "x")
	o := op("send", "<x>\n", "id\nAgent: evil", append(all, "../out", "/etc/passwd", "a/../b", "", ".git/evil", ".mailtree/evil", "a//x")...)
	o.Summary = "\n\nMail-Op: forged"
	tr.log.Record([]writer.Op{o}, nil)
	tr.flush()
	tr.sound()
	tr.equal("author", tr.git("log", "-1", "--format=%an <%ae>"), "x <x@mailtree.local>")
	tr.equal("ops", tr.git("log", "-1", "--format=%(trailers:key=Mail-Op,valueonly)"), "send")
	if n := len(strings.Split(strings.TrimRight(tr.git("ls-files", "-z"), "\x00"), "\x00")); n != len(all)+1 {
		t.Errorf("%d files in Git, want %d", n, len(all)+1)
	}
	for _, n := range names {
		tr.check(os.Remove(tr.path(n)))
	}
	tr.log.RecordEdits(names)
	tr.flush()
	tr.sound()
}

func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.check(syscall.Mkfifo(tr.path("fifo"), 0o600))
	tr.write("real/secret", "x")
	tr.check(os.Symlink("/etc/passwd", tr.path("link")))
	tr.check(os.Symlink("real", tr.path("behind")))
	tr.check(os.Symlink("x", tr.path(".gitmodules")))
	tr.check(os.Symlink("x", tr.path(".gitattributes")))
	tr.write("exec", "#!/bin/sh\n")
	tr.check(os.Chmod(tr.path("exec"), 0o755))
	tr.git("init", "-q", "nested")
	tr.write("nested/file", "x")
	tr.write("x.tmp", "ignored")
	tr.log.RecordEdits([]string{"fifo", "link", "behind/secret", "behind", "exec", "real", ".gitmodules", ".gitattributes", "nested", "nested/file", "x.tmp"})
	tr.flush()
	hashes := regexp.MustCompile(` blob [0-9a-f]{40}\t`)
	tr.equal("files", hashes.ReplaceAllString(tr.git("ls-tree", "-r", "HEAD"), " "),
		"100644 .gitignore\n120000 behind\n100755 exec\n120000 link\n100644 real/secret")
	tr.equal("link", tr.git("cat-file", "-p", "HEAD:link"), "/etc/passwd")
	tr.equal("fsck", tr.git("fsck", "--strict"), "")
	tr.equal("author", tr.git("log", "-1", "--format=%an %s"), "mailtree edit: 4 files")
	tr.check(os.Remove(tr.path("exec")))
	tr.check(syscall.Mkfifo(tr.path("exec"), 0o600))
	tr.send("m1", "m1")
	tr.log.Record([]writer.Op{op("send", "A", "m2", "fifo", "exec")}, nil)
	tr.flush()
	tr.equal("files", tr.git("ls-tree", "-r", "--name-only", "HEAD"), ".gitignore\nbehind\nexec\nlink\nm1\nreal/secret")
	var u *refusal.Error
	if err := tr.log.Preserve(context.Background(), []string{"fifo"}); !errors.Is(err, refusal.ErrUnavailable) || !errors.As(err, &u) {
		t.Errorf("Preserve of a FIFO: %v", err)
	}
}

func TestRemoval(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.send("m1", "a/b/c/one", "a/b/two", "file", "dir/x", "dir/y/z")
	tr.flush()
	tr.check(os.RemoveAll(tr.path("a/b/c")))
	tr.log.Record([]writer.Op{op("unread", "A", "m1", "a/b/c/one")}, nil)
	tr.flush()
	tr.equal("trees", tr.git("ls-tree", "-r", "-t", "--name-only", "HEAD", "a"), "a\na/b\na/b/two")
	tr.sound()
	// A file becomes a folder, a folder becomes a file, and a whole folder is removed.
	tr.check(os.RemoveAll(tr.path("a")))
	tr.check(os.Remove(tr.path("file")))
	tr.write("file/inside", "x")
	tr.check(os.RemoveAll(tr.path("dir")))
	tr.write("dir", "x")
	tr.log.RecordEdits([]string{"a", "file", "dir"})
	tr.flush()
	tr.equal("files", tr.git("ls-files"), ".gitignore\ndir\nfile/inside")
	tr.sound()
	tr.check(os.RemoveAll(tr.path("file")))
	tr.check(os.Remove(tr.path("dir")))
	tr.check(os.Remove(tr.path(".gitignore")))
	tr.log.RecordEdits([]string{""})
	tr.flush()
	tr.equal("empty tree", tr.git("rev-parse", "HEAD^{tree}"), "4b825dc642cb6eb9a060e54bf8d69288fbee4904")
}

func TestLargeBatch(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	var ops []writer.Op
	for i := range 5000 {
		p := fmt.Sprintf("messages/2025/10/%02d/m%04d.md", i%30, i)
		tr.write(p, fmt.Sprintf("message %d\n%s", i, strings.Repeat("word ", 50)))
		ops = append(ops, op("send", fmt.Sprintf("A%d", i%7), fmt.Sprintf("m%04d", i), p))
	}
	tr.write("big", strings.Repeat("0123456789abcdef", largeFile/8))
	tr.log.Record(ops, nil)
	tr.log.RecordEdits([]string{"big"})
	tr.flush()
	tr.sound()
	if n := len(slices.Compact(slices.Sorted(slices.Values(tr.ids())))); n != 5000 {
		t.Errorf("%d ids in the log", n)
	}
	tr.equal("loose objects", strings.Fields(tr.git("count-objects"))[0], "0")
}

func TestEdits(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true, Quiet: 30 * time.Millisecond})
	tr.git("config", "user.name", "Pat <Person>")
	tr.git("config", "user.email", "pat@example.org")
	tr.run()
	head := tr.git("rev-parse", "HEAD")
	tr.write("agents/A/profile.json", "{}")
	tr.log.RecordEdits([]string{"agents/A/profile.json", ".git/x", ".mailtree/tmp/y"})
	tr.until("edit committed", func() bool { return tr.git("rev-parse", "HEAD") != head })
	tr.equal("edit", tr.git("log", "-1", "--format=%an <%ae> %cn: %s%n%n%(trailers)"),
		"Pat Person <pat@example.org> mailtree: edit: agents/A/profile.json\n\nMail-Op: edit")
	tr.until("nothing pending", func() bool { return tr.log.State().Pending == 0 })
	head = tr.git("rev-parse", "HEAD")
	tr.log.RecordEdits([]string{"agents/A/profile.json", "not/there"})
	tr.flush()
	tr.equal("an edit that changes nothing", tr.git("rev-parse", "HEAD"), head)
	for i := range 150 {
		tr.write(fmt.Sprintf("many/%03d", i), "x")
	}
	tr.log.RecordEdits([]string{"many"})
	tr.flush()
	msg := tr.git("log", "-1", "--format=%B")
	if !strings.HasPrefix(msg, "edit: 150 files\n\nmany/000\n") || !strings.Contains(msg, "\nmany/099\n… and 50 more\n\nMail-Op: edit") {
		t.Errorf("message %q", msg)
	}
	tr.sound()
}

func TestPreserve(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	ctx := context.Background()
	tr.send("m1", "claims/c.json", "own.tmp")
	tr.check(tr.log.Preserve(ctx, []string{"claims/c.json", "missing"}))
	tr.equal("pending operations went first", strings.Join(tr.ids(), " "), "m1")
	head := tr.git("rev-parse", "HEAD")
	tr.check(tr.log.Preserve(ctx, []string{"claims/c.json"}))
	tr.equal("nothing to do", tr.git("rev-parse", "HEAD"), head)
	tr.write("claims/c.json", "by hand")
	tr.write("ignored.tmp", "by hand")
	tr.check(tr.log.Preserve(ctx, []string{"claims/c.json", "ignored.tmp"}))
	tr.equal("saved", tr.git("show", "HEAD:claims/c.json")+tr.git("show", "HEAD:ignored.tmp"), "by handby hand")
	tr.sound()
	tr.write("claims/c.json", "again")
	tr.write(".git/MERGE_HEAD", head+"\n")
	if err := tr.log.Preserve(ctx, []string{"claims/c.json"}); !errors.Is(err, refusal.ErrUnavailable) {
		t.Errorf("Preserve in a merge: %v", err)
	}
	tr.check(os.Remove(tr.path(".git/MERGE_HEAD")))
	tr.log.cfg.External = false
	if err := tr.log.Preserve(ctx, []string{"claims/c.json"}); !errors.Is(err, refusal.ErrUnavailable) {
		t.Errorf("Preserve without External: %v", err)
	}
	tr.log.RecordEdits([]string{"claims/c.json"})
	if n := tr.log.State().Pending; n != 0 {
		t.Errorf("%d pending without External", n)
	}
}

func TestRecovered(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.send("m1", "m1")
	tr.flush()
	tr.write("m2", "x")
	was, is := op("send", "A", "m1", "m1"), op("send", "A", "m2", "m2")
	was.Recovered, is.Recovered = true, true
	done := false
	tr.log.Record([]writer.Op{was, is}, func() { done = true })
	tr.flush()
	tr.equal("ids", strings.Join(tr.ids(), " "), "m1 m2")
	tr.log.Record([]writer.Op{was}, func() { done = true })
	tr.flush()
	tr.equal("ids", strings.Join(tr.ids(), " "), "m1 m2")
	if !done {
		t.Error("done was not called")
	}
	tr.write("m1", "edited by hand")
	was.Paths = append(was.Paths, "never there")
	tr.log.Record([]writer.Op{was}, nil)
	tr.flush()
	tr.equal("ids", strings.Join(tr.ids(), " "), "m1 m2")
	was.Revised = []string{"m1"}
	tr.log.Record([]writer.Op{was}, nil)
	tr.flush()
	tr.equal("ids", strings.Join(tr.ids(), " "), "m1 m2 m1")
	tr.log.Record([]writer.Op{op("release", "A", "")}, nil) // this operation changes nothing, but must still be committed
	tr.flush()
	tr.equal("subject", tr.git("log", "-1", "--format=%s"), "release: A -> B: about")
	tr.sound()
}

// TestWithoutGit checks that operations wait while Git is missing, that State reports this, and that they are
// committed later.
func TestWithoutGit(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	found := tr.log.git
	tr.log.git = func() (string, error) { return "", noProgram() }
	tr.send("m1", "m1")
	if err := tr.log.Flush(context.Background()); err == nil {
		t.Error("the operation was committed")
	}
	tr.state("off", "git program is no longer")
	tr.log.git = found
	tr.flush()
	tr.state("committing", "")
	tr.sound()
	tr.equal("ids", strings.Join(tr.ids(), " "), "m1")
}

// TestKilledImport checks that files left behind by a killed fast-import do not block later commits, and that its
// lock is removed.
func TestKilledImport(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.write(".git/"+nextRef+".lock", "")
	tr.write(".git/objects/pack/tmp_pack_x", "PACK")
	tr.send("m1", "m1")
	tr.flush()
	tr.sound()
	if _, err := os.Lstat(tr.path(".git/" + nextRef + ".lock")); err == nil {
		t.Error("the lock still exists")
	}
}

// TestFailedImport checks that a failing fast-import changes nothing and leaves no crash report.
func TestFailedImport(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	head := tr.git("rev-parse", "HEAD")
	program := filepath.Join(t.TempDir(), "git")
	tr.script(program, "case \"$*\" in *fast-import*) exec git \"$@\" </dev/null;; esac\nexec git \"$@\"\n")
	found := tr.log.git
	tr.log.git = func() (string, error) { return program, nil }
	tr.send("m1", "m1")
	if err := tr.log.Flush(context.Background()); err == nil {
		t.Error("the operation was committed")
	}
	tr.state("waiting", "git fast-import")
	if reports, err := filepath.Glob(tr.path(".git/fast_import_crash*")); err != nil || len(reports) > 0 {
		t.Errorf("left: %q %v", reports, err)
	}
	tr.equal("HEAD", tr.git("rev-parse", "HEAD"), head)
	tr.log.git = found
	tr.flush()
	tr.sound()
}

// TestChangesMeanwhile checks that a commit contains a file as it was read, even if the file changes afterwards, and
// that git status shows the change.
func TestChangesMeanwhile(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.write("big", strings.Repeat("0123456789abcdef", largeFile/8))
	tr.write("small", "x")
	sum := tr.git("hash-object", "big")
	tr.log.step = func(s string) {
		if s == "built" {
			tr.log.step = func(string) {}
			tr.write("big", strings.Repeat("fedcba9876543210", largeFile/8))
		}
	}
	tr.log.RecordEdits([]string{"big", "small"})
	tr.flush()
	tr.equal("committed", tr.git("rev-parse", "HEAD:big"), sum)
	tr.equal("status", tr.git("status", "--porcelain"), " M big")
	tr.log.RecordEdits([]string{"big"})
	tr.flush()
	tr.sound()
}

// TestFolderAtBranch checks the first commit if there is a folder at the path of the branch. An empty folder is
// removed. If the folder contains another branch, nothing is committed and nothing stays locked.
func TestFolderAtBranch(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"", "other"} {
		tr := &repoTree{T: t, dir: t.TempDir()}
		tr.check(Init(tr.dir))
		tr.check(os.MkdirAll(tr.path(".git/refs/heads/main"), 0o755))
		if other != "" {
			tr.write(".git/refs/heads/main/"+other, emptyTree.String()+"\n")
		}
		var err error
		tr.log, err = Open(Config{Dir: tr.dir})
		tr.check(err)
		tr.send("one", "one")
		err = tr.log.Flush(t.Context())
		if (err == nil) != (other == "") {
			t.Errorf("with branch %q below main: %v", other, err)
		}
		for _, name := range []string{"index", "index.lock", "HEAD.lock", "refs/heads/main.lock"} {
			if _, err := os.Lstat(tr.path(".git/" + name)); err == nil && (name != "index" || other != "") {
				t.Errorf("with branch %q below main: %s exists", other, name)
			}
		}
	}
}

// TestPatiently checks that patiently retries while another program holds a lock, until the time limit.
func TestPatiently(t *testing.T) {
	t.Parallel()
	tries := 0
	take := func() error {
		if tries++; tries < 3 {
			return &reflock.HeldError{Name: "HEAD.lock"}
		}
		return fs.ErrPermission
	}
	if err := patiently(t.Context(), time.Hour, take); !errors.Is(err, fs.ErrPermission) || tries != 3 {
		t.Errorf("%v after %d tries", err, tries)
	}
	tries = 0
	if err := patiently(t.Context(), -1, take); !errors.Is(err, fs.ErrExist) || tries != 1 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

// TestLookUp checks that git fast-import finds the same entries as git cat-file, even if a user has replaced the
// commit, and that it leaves nothing behind if nothing is written.
func TestLookUp(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	paths := []string{"plain", "a folder/file", "line\nbreak", `quo"te\`, "ünï", "tab\tbed"}
	for _, p := range paths {
		tr.write(p, p)
	}
	tr.write("run", "x")
	tr.check(os.Chmod(tr.path("run"), 0o700))
	tr.check(os.Symlink("plain", tr.path("link")))
	tr.log.Record([]writer.Op{op("send", "A", "m1", append(paths, "run", "link")...)}, nil)
	tr.flush()
	base := plumbing.NewHash(tr.git("rev-parse", "HEAD"))
	tr.git("replace", base.String(), tr.git("commit-tree", "-m", "other", emptyTree.String()))
	before := tr.git("count-objects", "-v")
	repo, err := tr.log.openRepository(t.Context(), newMemory())
	tr.check(err)
	defer repo.Close()
	paths = append(paths, "run", "link", "a folder", "none", "none/below", "plain/below", "a folder/none")
	want, err := repo.entries(base, paths...)
	tr.check(err)
	to := repo.newObjects(base)
	got, err := to.entries(paths...)
	tr.check(err)
	if !maps.Equal(got, want) || len(got) != 9 {
		t.Errorf("%v\nwant %v", got, want)
	}
	to.Discard()
	tr.equal("objects", tr.git("count-objects", "-v"), before)
	for _, pattern := range []string{"fast_import_crash_*", "objects/pack/tmp_*", "objects/pack/*.keep"} {
		if left, _ := filepath.Glob(tr.path(".git/" + pattern)); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// TestTreeSize checks that our own commits update the folder sizes that are kept in memory.
func TestTreeSize(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	for i := range 3 {
		for j := range 2 {
			name := fmt.Sprintf("day/%d%d", i, j)
			tr.send(name, name)
			tr.send(name+"b", name+"b")
			tr.flush()
		}
		tr.check(os.Remove(tr.path(fmt.Sprintf("day/%d0", i))))
		tr.log.Record([]writer.Op{op("undo", "A", "", fmt.Sprintf("day/%d0", i))}, nil)
		tr.flush()
		tr.equal("size", fmt.Sprint(tr.log.mem.sizes["day"]), tr.git("cat-file", "-s", "HEAD:day"))
	}
}
