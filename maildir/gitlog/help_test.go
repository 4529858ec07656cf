package gitlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mailtree/fixtures/inmemory"
	"mailtree/fixtures/waits"
	"mailtree/maildir/clock"
	"mailtree/maildir/writer"
)

// TestMain disables the user's Git configuration. The test program also runs as the process that TestKill kills, and
// as the process that TestScarce limits to a few file descriptors.
func TestMain(m *testing.M) {
	os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	os.Unsetenv("GIT_DIR")
	if at := os.Getenv("GITLOG_KILL_AT"); at != "" {
		commitAndDie(os.Getenv("GITLOG_DIR"), at)
		os.Exit(3)
	}
	if dir := os.Getenv("GITLOG_SCARCE"); dir != "" {
		missedWithFew(dir)
		os.Exit(0)
	}
	waits.Tune()
	os.Exit(m.Run())
}

// commitAndDie commits the new content of the path "late", as an operation that merges the commit in the environment.
// It kills its own process when it reaches the step named by at.
func commitAndDie(dir, at string) {
	cfg := Config{Dir: dir, External: true}
	if os.Getenv("GITLOG_EMBEDDED") != "" {
		cfg.git = noGit
	}
	l, err := Open(cfg)
	if err != nil {
		panic(err)
	}
	if at == "reserved" {
		l.optimistic = 0
	}
	l.step = func(s string) {
		if s == at {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	late := op("send", "A", "late", "late", "gone")
	late.Merges.Commit = os.Getenv("GITLOG_MERGES")
	l.Record([]writer.Op{late}, nil)
	if err := l.Flush(context.Background()); err != nil {
		panic(err)
	}
}

func op(verb, agent, id string, paths ...string) writer.Op {
	return writer.Op{Verb: verb, Agent: agent, ID: id, Summary: agent + " -> B: about " + id, At: time.Unix(1760000000, 0), Paths: paths}
}

// largeFile is half the size, in bytes, of the large files in the tests.
const largeFile = 1 << 20

// repoTree is a mail tree that tests check with the git program.
type repoTree struct {
	*testing.T
	dir     string
	log     *Log
	running bool // Run is running
}

func newTree(t *testing.T, cfg Config) *repoTree {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	cfg.git = engineOf(t)
	cfg.Dir = inmemory.Dir(t)
	tr := &repoTree{T: t, dir: cfg.Dir}
	tr.check(Init(cfg.Dir))
	if cfg.Delay == 0 {
		cfg.Delay = time.Millisecond
	}
	cfg.Step = waits.Pauses()
	var err error
	tr.log, err = Open(cfg)
	tr.check(err)
	tr.write(".gitignore", "/.mailtree/\n*.tmp\n")
	tr.log.Record([]writer.Op{op("project", "", "", ".gitignore")}, nil)
	tr.flush()
	return tr
}

func (t *repoTree) check(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (t *repoTree) path(p string) string { return filepath.Join(t.dir, p) }

func (t *repoTree) write(p, text string) {
	t.Helper()
	t.check(os.MkdirAll(filepath.Dir(t.path(p)), 0o755))
	t.check(os.WriteFile(t.path(p), []byte(text), 0o644))
}

// send writes files and records one operation for them.
func (t *repoTree) send(id string, paths ...string) {
	t.Helper()
	for _, p := range paths {
		t.write(p, "text of "+id+"\n")
	}
	t.log.Record([]writer.Op{op("send", "A", id, paths...)}, nil)
}

func (t *repoTree) flush() {
	t.Helper()
	if err := t.log.Flush(context.Background()); err != nil {
		t.Log(t.log.State(), errors.Unwrap(err))
		t.Fatal(err)
	}
}

// needIndex lists the git commands that need an index.
const needIndex = "add cherry-pick checkout commit diff ls-files merge mv rebase reset revert rm stash status update-index write-tree"

// giveIndex creates the Git index for a user's git command, if the embedded engine has removed the index. The engine
// removes the index again later.
func (t *repoTree) giveIndex(args []string) {
	for args[0] == "-c" {
		args = args[2:]
	}
	if t.log == nil || !t.log.embedded || !strings.Contains(" "+needIndex+" ", " "+args[0]+" ") {
		return
	}
	for _, name := range []string{".git/index", ".git/index.lock"} {
		if _, err := os.Lstat(t.path(name)); err == nil {
			return
		}
	}
	_, _ = t.tryGit("read-tree", "HEAD") // ignore the error, because there may be no commit yet
}

func (t *repoTree) tryGit(args ...string) (string, error) {
	t.giveIndex(args)
	var out, errs bytes.Buffer
	c := exec.Command("git", args...)
	c.Dir, c.Stdout, c.Stderr = t.dir, &out, &errs
	c.Env = append(os.Environ(), "HOME="+t.dir, "GIT_AUTHOR_NAME=Person", "GIT_AUTHOR_EMAIL=p@x", "GIT_COMMITTER_NAME=Person", "GIT_COMMITTER_EMAIL=p@x")
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

func (t *repoTree) git(args ...string) string {
	t.Helper()
	out, err := t.tryGit(args...)
	t.check(err)
	return out
}

func (t *repoTree) equal(what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%s\nwant:\n%s", what, got, want)
	}
}

// sound checks invariant I6: fsck and status are clean, and the index contains exactly the commit's tree.
func (t *repoTree) sound() {
	t.Helper()
	if t.running { // a commit is visible when the branch has moved, but is complete only a moment later
		t.until("no commit is in progress", func() bool { _, err := os.Lstat(t.path(".git/" + markFile)); return err != nil })
	}
	t.equal("fsck", t.git("fsck", "--strict", "--no-dangling"), "")
	t.equal("status", t.git("status", "--porcelain"), "")
	t.equal("write-tree", t.git("write-tree"), t.git("rev-parse", "HEAD^{tree}"))
	if _, err := os.Lstat(t.path(".git/" + markFile)); err == nil {
		t.Error("the mark still exists")
	}
}

// ids lists the Mail-Id trailers of the history, oldest first.
func (t *repoTree) ids() []string {
	t.Helper()
	return strings.Fields(t.git("log", "--reverse", "--format=%(trailers:key=Mail-Id,valueonly)"))
}

func (t *repoTree) state(mode, part string) {
	t.Helper()
	if s := t.log.State(); s.Mode != mode || !strings.Contains(s.Reason, part) {
		t.Errorf("state %q %q, want %q with %q", s.Mode, s.Reason, mode, part)
	}
}

// until waits until a condition is true.
func (t *repoTree) until(what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen: %s (state %+v)", what, t.log.State())
		}
		t.check(clock.Sleep(context.Background(), 5*time.Millisecond))
	}
}

// run starts Run, which is stopped when the test ends.
func (t *repoTree) run() {
	t.running = true
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- t.log.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
