package gitlog

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"mailtree/fixtures/trap"
	"mailtree/maildir/writer"
)

// TestFault checks that a file in .git that temporarily cannot be read is not treated as missing.
func TestFault(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".git/info/exclude", ".git/config", ".git/HEAD", ".git/index", ".git/mailtree-branch"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, Config{External: true})
			tr.write(".git/info/exclude", "/.mailtree\nsecret\n")
			tr.write("kept", "x")
			tr.write("secret", "x")
			tr.log.RecordEdits([]string{"kept", "secret"})
			head := tr.git("rev-parse", "HEAD")
			back := trap.Unreadable(t, tr.path(name))
			if err := tr.log.Flush(context.Background()); err == nil {
				t.Error("the edit was committed")
			}
			if name != ".git/index" { // the server does not follow a link in place of the index
				tr.state("waiting", "the server will retry")
			}
			back()
			tr.equal("HEAD", tr.git("rev-parse", "HEAD"), head)
			tr.flush()
			tr.state("committing", "")
			tr.equal("files", tr.git("ls-files"), ".gitignore\nkept")
			tr.sound()
		})
	}
}

// TestFaultOfOurLocks checks that a lock that a killed run left behind is still treated as ours if it temporarily
// cannot be read.
func TestFaultOfOurLocks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".git/index.lock", ".git/refs/heads/main.lock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, Config{})
			tr.write("late", "late")
			exe, err := os.Executable()
			tr.check(err)
			c := exec.Command(exe)
			c.Env = append(os.Environ(), "GITLOG_DIR="+tr.dir, "GITLOG_KILL_AT=ref locked")
			if err := c.Run(); err == nil {
				t.Fatal("the process was not killed")
			}
			back := trap.Unreadable(t, tr.path(name))
			tr.log, err = Open(Config{Dir: tr.dir})
			tr.check(err)
			if _, err := os.Lstat(tr.path(".git/" + markFile)); err != nil {
				t.Errorf("the owner of the locks was forgotten: %v", err)
			}
			back()
			tr.log.Record([]writer.Op{op("send", "A", "late", "late")}, nil)
			tr.flush()
			tr.sound()
		})
	}
}
