package gitlog

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mailtree/fixtures/inmemory"
	"mailtree/maildir/writer"
)

// away calls act to change the tree while no Log is running. Then it opens and runs a Log.
func (t *repoTree) away(cfg Config, act func()) {
	t.Helper()
	act()
	t.reopen(cfg)
	t.run()
}

func (t *repoTree) reopen(cfg Config) {
	t.Helper()
	cfg.Dir, cfg.Delay = t.dir, time.Millisecond
	if cfg.git == nil {
		cfg.git = engineOf(t)
	}
	if cfg.Quiet == 0 {
		cfg.Quiet = 10 * time.Millisecond
	}
	var err error
	t.log, err = Open(cfg)
	t.check(err)
}

// caughtUp runs catchUp to completion and commits the changes that it finds.
func (t *repoTree) caughtUp() {
	t.Helper()
	t.log.catchUp(context.Background(), t.log.recorded)
	t.flush()
}

func (t *repoTree) person() {
	t.git("config", "user.name", "Pat")
	t.git("config", "user.email", "pat@example.org")
}

func TestCatchUp(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.person()
	tr.send("m1", "messages/m1", "messages/m2", "gone/deep/m3", "moved/m4", "kept", "fifo", "module.md", "file")
	tr.flush()
	tr.away(Config{External: true}, func() {
		tr.write("messages/m1", "edited by hand")
		tr.check(os.Chmod(tr.path("messages/m2"), 0o755))
		tr.check(os.RemoveAll(tr.path("gone")))
		tr.check(os.Rename(tr.path("moved"), tr.path("elsewhere")))
		tr.check(os.Symlink("elsewhere", tr.path("moved")))
		tr.check(os.Remove(tr.path("file")))
		tr.write("file/inside", "x")
		tr.write("agents/New/profile.json", "{}")
		tr.write("agents/New/draft.tmp", "ignored")
		tr.write("agents-more/x", "x")
		tr.write(".mailtree/tmp/x", "x")
		tr.git("init", "-q", "nested")
		tr.write("nested/file", "x")
		tr.check(syscall.Mkfifo(tr.path("pipe"), 0o600))
		tr.check(os.Symlink("/etc/passwd", tr.path("link")))
		tr.check(os.Chtimes(tr.path("kept"), time.Now(), time.Now()))
	})
	tr.until("the edits are committed", func() bool { return strings.HasPrefix(tr.git("log", "-1", "--format=%s"), "edit: ") })
	tr.equal("commit", tr.git("log", "-1", "--format=%an <%ae> %cn: %s"), "Pat <pat@example.org> mailtree: edit: 11 files")
	tr.equal("changes", tr.git("show", "--no-renames", "--name-status", "--format="),
		"A\tagents-more/x\nA\tagents/New/profile.json\nA\telsewhere/m4\nD\tfile\nA\tfile/inside\nD\tgone/deep/m3\nA\tlink\nM\tmessages/m1\nM\tmessages/m2\nA\tmoved\nD\tmoved/m4")
	tr.check(os.RemoveAll(tr.path("nested")))
	tr.flush() // waits until index.lock is released, which is shortly after the branch moves
	tr.sound()
}

// TestCatchUpAtTheEnd checks that if a server is stopped right after it starts, it still commits the edits made before
// the start.
func TestCatchUpAtTheEnd(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.person()
	tr.send("m1", "messages/m1")
	tr.flush()
	tr.write("messages/m1", "edited by hand")
	tr.write("messages/m2", "new")
	tr.reopen(Config{External: true, Quiet: time.Hour})
	over, end := context.WithCancel(context.Background())
	end()
	tr.check(tr.log.Run(over))
	tr.equal("commit", tr.git("log", "-1", "--format=%s"), "edit: 2 files")
	tr.sound()
}

func TestCatchUpFindsNothing(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.send("m1", "messages/m1", "staged", "assumed", "both")
	tr.flush()
	tr.write("staged", "by hand")
	tr.write("new", "by hand")
	tr.git("add", "staged", "new")
	tr.git("update-index", "--assume-unchanged", "assumed")
	tr.write("assumed", "by hand")
	head, status := tr.git("rev-parse", "HEAD"), tr.git("status", "--porcelain")
	tr.reopen(Config{External: true})
	found, err := tr.log.missed(context.Background(), 0)
	if len(found) > 0 || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
	tr.caughtUp()
	tr.equal("HEAD", tr.git("rev-parse", "HEAD"), head)
	tr.equal("status", tr.git("status", "--porcelain"), status)
}

func TestCatchUpIsOff(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.send("m1", "m1")
	tr.flush()
	tr.away(Config{}, func() { tr.write("m1", "by hand"); tr.write("new", "by hand") })
	tr.send("m2", "m2")
	tr.flush()
	tr.equal("status", tr.git("status", "--porcelain"), " M m1\n?? new")
}

// TestCatchUpWithoutIndex checks that a missing index is treated as equal to HEAD.
func TestCatchUpWithoutIndex(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.send("m1", "a/m1", "a/m2", "a/m3")
	tr.flush()
	tr.check(os.Remove(tr.path(".git/index")))
	tr.check(os.Remove(tr.path("a/m1")))
	tr.write("a/m2", "by hand")
	tr.reopen(Config{External: true})
	tr.caughtUp()
	tr.equal("changes", tr.git("show", "--name-status", "--format="), "D\ta/m1\nM\ta/m2")
	tr.sound()
}

func TestCatchUpAfterAMerge(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	tr.person()
	tr.send("m1", "m1")
	tr.flush()
	head := tr.git("rev-parse", "HEAD")
	tr.away(Config{External: true}, func() {
		tr.write("m1", "by hand")
		tr.write(".git/MERGE_HEAD", head+"\n")
	})
	tr.until("the merge is reported", func() bool { return tr.log.State().Mode == "waiting" })
	tr.equal("HEAD in the merge", tr.git("rev-parse", "HEAD"), head)
	tr.check(os.Remove(tr.path(".git/MERGE_HEAD")))
	tr.until("the edit is committed", func() bool { return tr.git("rev-parse", "HEAD") != head && tr.log.State().Pending == 0 })
	tr.equal("commit", tr.git("log", "-1", "--format=%an %s"), "Pat edit: m1")
	tr.sound()
}

// TestCatchUpBesideOperations checks that catchUp does not commit the files of operations as edits. This applies to
// operations recovered from the journal, and to operations that have written their files but have not been recorded
// yet.
func TestCatchUpBesideOperations(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.send("first", "first", "gone")
	tr.flush()
	tr.write("recovered", "x")
	tr.write("late", "x")
	tr.check(os.Remove(tr.path("gone")))
	tr.write("by hand", "x")
	tr.reopen(Config{External: true})
	var recorded atomic.Bool
	tr.log.cfg.UnderWay = func(path string) bool { return !recorded.Load() && (path == "late" || path == "gone") }
	r := op("send", "A", "recovered", "recovered")
	r.Recovered = true
	tr.log.Record([]writer.Op{r}, nil)
	tr.run()
	tr.until("the edit is committed", func() bool { return tr.git("log", "-1", "--format=%s") == "edit: by hand" })
	tr.log.Record([]writer.Op{op("send", "A", "late", "late", "gone")}, nil)
	recorded.Store(true)
	tr.flush()
	tr.equal("files of late", tr.git("log", "-1", "--name-only", "--format="), "gone\nlate")
	tr.equal("ids", strings.Join(tr.ids(), " "), "first recovered late")
	tr.sound()
}

// TestEditsLeavePathsOfOperations checks that an edit is not committed while an operation on the same path is waiting
// to be committed.
func TestEditsLeavePathsOfOperations(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.write("a", "x")
	tr.write("b", "x")
	tr.log.RecordEdits([]string{"a", "b"})
	tr.log.Record([]writer.Op{op("send", "A", "m", "a")}, nil)
	tr.check(tr.log.exclusive(t.Context(), func() error { return tr.log.commitEdits(t.Context()) }))
	tr.equal("edit", tr.git("log", "-1", "--format=%s", "--name-only"), "edit: b\n\nb")
	if n := tr.log.State().Pending; n != 2 {
		t.Errorf("%d pending", n)
	}
	tr.flush()
	tr.equal("operation", tr.git("log", "-1", "--format=%s", "--name-only"), "send: A -> B: about m\n\na")
}

func TestFilesOfGitThatAreNone(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		".git": "off", ".git/HEAD": "off", ".git/config": "waiting", ".git/index": "waiting", ".git/refs/heads/main": "waiting",
		".git/packed-refs": "waiting", ".git/logs/HEAD": "", ".git/info/exclude": "", ".git/" + branchFile: "waiting", ".git/" + markFile: "",
		".git/index.lock": "",
	} {
		for kind, make := range map[string]func(string) error{
			"FIFO":   func(f string) error { return syscall.Mkfifo(f, 0o600) },
			"folder": func(f string) error { return os.MkdirAll(filepath.Join(f, "x"), 0o700) },
			"loop":   func(f string) error { return os.Symlink(filepath.Base(f), f) },
			"huge": func(f string) error {
				if err := os.WriteFile(f, nil, 0o600); err != nil {
					return err
				}
				return os.Truncate(f, 1<<40)
			},
		} {
			t.Run(kind+" at "+name, func(t *testing.T) {
				t.Parallel()
				tr := newTree(t, Config{External: true})
				tr.send("m1", "m1")
				tr.flush()
				if name == ".git/packed-refs" {
					tr.git("pack-refs", "--all")
				}
				away := filepath.Join(inmemory.Dir(t), "away")
				had := os.Rename(tr.path(name), away) == nil
				tr.check(make(tr.path(name)))
				tr.check(Init(tr.dir))
				tr.reopen(Config{External: true})
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				tr.send("m2", "m2")
				if err := tr.log.Flush(ctx); err == nil && want != "" && !(name == ".git/refs/heads/main" && kind == "folder") {
					t.Error("committed anyway")
				}
				if s := tr.log.State(); want != "" && kind == "FIFO" && (s.Mode != want || s.Reason == "") {
					t.Errorf("state %+v", s)
				}
				tr.check(os.RemoveAll(tr.path(name)))
				if had {
					tr.check(os.Rename(away, tr.path(name)))
				}
				tr.flush()
				tr.state("committing", "")
			})
		}
	}
}

// TestHostileRunFolder checks that files in .mailtree that come from a hostile repository have no effect, and that
// nothing is written through a link there.
func TestHostileRunFolder(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{External: true})
	tr.write(".mailtree/branch", "refs/heads/evil\n")
	tr.write(".mailtree/git.lock", `{"branch":"refs/heads/main"}`)
	tr.git("add", "-f", ".mailtree")
	tr.git("commit", "-qm", "evil")
	tr.reopen(Config{External: true})
	tr.state("committing", "")
	tr.send("m1", "m1")
	tr.flush()
	tr.caughtUp()
	tr.equal("subject", tr.git("log", "-1", "--format=%s"), "send: A -> B: about m1")
	tr.sound()
}

func TestRunFolderIsALink(t *testing.T) {
	t.Parallel()
	target := t.TempDir()
	dir := t.TempDir()
	tr := &repoTree{T: t, dir: dir}
	tr.check(os.MkdirAll(filepath.Join(target, "git.new"), 0o700))
	tr.check(os.Symlink(target, tr.path(".mailtree")))
	tr.check(Init(dir))
	tr.reopen(Config{External: true})
	tr.send("m1", "m1")
	tr.flush()
	tr.caughtUp()
	var all []string
	tr.check(filepath.WalkDir(target, func(p string, _ fs.DirEntry, err error) error { all = append(all, p); return err }))
	if len(all) != 2 {
		t.Errorf("written through the link: %q", all)
	}
	tr.equal("files", tr.git("ls-files"), "m1")
	tr.sound()
}

// TestRecordIsInGit checks that if .git is moved, the record of the branch moves with it.
func TestRecordIsInGit(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	away := filepath.Join(inmemory.Dir(t), "away")
	tr.check(os.Rename(tr.path(".git"), away))
	tr.reopen(Config{})
	tr.state("off", ".git folder is missing")
	tr.send("m1", "m1")
	if err := tr.log.Flush(context.Background()); err == nil {
		t.Error("committed without .git")
	}
	if _, err := os.Lstat(tr.path(".git")); err == nil {
		t.Error(".git was created")
	}
	tr.check(os.Rename(away, tr.path(".git")))
	tr.flush()
	tr.git("checkout", "-q", "-b", "side")
	tr.reopen(Config{})
	tr.state("detached", "git checkout main")
}
