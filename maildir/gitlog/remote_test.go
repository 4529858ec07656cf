package gitlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"

	"mailtree/maildir/history"
	"mailtree/maildir/merge"
)

// TestRemoteConfiguration checks that fetch and push use the user's ssh command, run no hooks, and start no helper
// programs that a URL specifies.
func TestRemoteConfiguration(t *testing.T) {
	t.Parallel()
	dir, bare := t.TempDir(), filepath.Join(t.TempDir(), "mail.git")
	git := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	git("init", "-q", "--bare", bare)
	if err := Init(dir); err != nil {
		t.Fatal(err)
	}
	ran := filepath.Join(t.TempDir(), "ran")
	hook := filepath.Join(dir, ".git", "hooks", "pre-push")
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Open(Config{Dir: dir, External: true})
	if err != nil {
		t.Fatal(err)
	}
	l.RecordEdits([]string{"a"})
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	git("remote", "add", "origin", bare)
	if err := l.Push(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m, err := l.Compare(t.Context()); err != nil || m.Ours != m.Theirs || m.Ours == "" {
		t.Errorf("after a push: %+v, %v", m, err)
	}
	git("config", "core.sshCommand", "echo my ssh >&2; exit 1; :")
	for url, want := range map[string]string{
		"ssh://example.invalid/mail.git": "my ssh",
		"ext::sh -c touch% " + ran:       "'ext' not allowed",
	} {
		git("remote", "set-url", "origin", url)
		if _, err := l.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("fetch from %s: %v, not %q", url, err, want)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a hook or a helper ran")
	}
}

// TestRemoteAsksNobody checks that no program that the environment or the configuration specifies is run to ask for
// a password.
func TestRemoteAsksNobody(t *testing.T) {
	home := t.TempDir()
	asked := filepath.Join(home, "asked")
	program := filepath.Join(home, "askpass")
	if err := os.WriteFile(program, []byte("#!/bin/sh\ntouch "+asked+"\necho secret\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(home, "config")
	if err := os.WriteFile(config, []byte("[core]\n\taskPass = "+program+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	for _, name := range []string{"", "GIT_ASKPASS", "SSH_ASKPASS"} {
		if name != "" {
			t.Setenv(name, program)
		}
		c := remoteCommand(t.Context(), "git", home, "credential", "fill")
		c.Env = append(c.Env, "GIT_DIR="+filepath.Join(home, "none"))
		c.Stdin = strings.NewReader("protocol=https\nhost=example.org\n\n")
		if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "terminal prompts disabled") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		if _, err := os.Stat(asked); err == nil {
			t.Errorf("%s: %s was run", name, program)
		}
	}
}

// TestRemoteBatchMode checks that ssh runs in batch mode unless the user has configured how to run it, and that a
// change of the configuration applies to the next fetch.
func TestRemoteBatchMode(t *testing.T) {
	home := t.TempDir()
	path := func(name string) string { return filepath.Join(home, name) }
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(path(name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"ssh", "mine"} {
		write(name, "#!/bin/sh\necho "+name+" \"$1\" >&2\nexit 1\n")
	}
	write("config", "[include]\n\tpath = included\n")
	t.Setenv("PATH", home+":"+os.Getenv("PATH"))
	t.Setenv("GIT_CONFIG_GLOBAL", path("config"))
	t.Setenv("GIT_SSH_COMMAND", "")
	t.Setenv("GIT_SSH", "")
	tr := newTree(t, Config{})
	tr.git("remote", "add", "origin", "ssh://example.invalid/mail.git")
	fetch := func(want string) {
		t.Helper()
		if _, err := tr.log.Fetch(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("fetch: %v, not %q", err, want)
		}
	}
	const batch = "ssh -oBatchMode=yes"
	script := tr.path(".git/" + ownFolder + "/" + ownSSH)
	for range 2 {
		fetch(batch)
		write("included", "[core]\n\tsshCommand = "+path("mine")+"\n")
		fetch("mine")
		write("included", "")
		fetch(batch)
		tr.check(os.Chmod(script, 0o600)) // as on a file system that is mounted with noexec
	}
	t.Setenv("GIT_SSH", path("mine"))
	fetch("mine")
	t.Setenv("GIT_SSH_COMMAND", path("mine")+" first")
	fetch("mine first")
}

// TestRemoteHangs checks that the user's ssh command has no terminal on which to prompt, and ends when the fetch
// ends.
func TestRemoteHangs(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	began, ended := filepath.Join(t.TempDir(), "began"), filepath.Join(t.TempDir(), "ended")
	tr.git("config", "core.sshCommand", "trap 'touch "+ended+"; exit 1' TERM; echo $$ >"+began+"; sleep 600 & wait; :")
	tr.git("remote", "add", "origin", "ssh://example.invalid/mail.git")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := tr.log.Fetch(ctx)
		done <- err
	}()
	pid := 0
	tr.until("ssh runs", func() bool {
		text, _ := os.ReadFile(began)
		_, err := fmt.Sscanf(string(text), "%d\n", &pid)
		return err == nil
	})
	own, err := unix.Getsid(0)
	tr.check(err)
	if its, err := unix.Getsid(pid); err != nil || its == own {
		t.Errorf("ssh is in session %d, which must not be the server's: %v", its, err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	tr.until("ssh has ended", func() bool {
		_, err := os.Stat(ended)
		return err == nil
	})
}

func TestWithoutPassword(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"fatal: unable to access 'https://ann:secret@example.org/mail.git/': no": "fatal: unable to access 'https://example.org/mail.git/': no",
		"git@example.org:mail.git": "git@example.org:mail.git",
		"/a path/mail.git":         "/a path/mail.git",
	} {
		if got := withoutPassword(text); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestIsBehind checks that isBehind returns true if Git's lock already exists, because another push is in progress. It
// must return false if the lock cannot be created for another reason.
func TestIsBehind(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"File exists.": true, "Permission denied": false, "No space left on device": false} {
		said := "remote: error: cannot lock ref 'refs/heads/main': Unable to create '/mail.git/./refs/heads/main.lock': " + text + "\n" +
			"To /mail.git\n ! [remote rejected] main -> main (failed to update ref)\n"
		if isBehind(said) != want {
			t.Errorf("%s: %v", text, !want)
		}
	}
}

// TestBlobsTooLarge checks that a huge file of zeros is refused immediately, while Git is still writing the file's
// content. In a hostile machine's pack, such a file is tiny.
func TestBlobsTooLarge(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	zeros := filepath.Join(t.TempDir(), "zeros")
	tr.check(os.WriteFile(zeros, nil, 0o600))
	tr.check(os.Truncate(zeros, maxObject+1))
	blob := tr.git("hash-object", "-w", zeros)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := tr.log.Blobs(ctx, func(read func(string) ([]byte, error)) error {
		_, err := read(blob)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "268435457 bytes") || ctx.Err() != nil {
		t.Errorf("%v, %v", err, ctx.Err())
	}
}

// bomb creates a tree of 10^levels files from a few objects and returns its name.
func (t *repoTree) bomb(levels int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	t.check(os.WriteFile(file, nil, 0o600))
	line := "100644 blob " + t.git("hash-object", "-w", file)
	for range levels {
		var list strings.Builder
		for i := range 10 {
			fmt.Fprintf(&list, "%s\t%d\n", line, i)
		}
		c := exec.Command("git", "-C", t.dir, "mktree")
		c.Stdin = strings.NewReader(list.String())
		made, err := c.Output()
		t.check(err)
		line = "040000 tree " + strings.TrimSpace(string(made))
	}
	return strings.TrimPrefix(line, "040000 tree ")
}

// TestTreeBomb checks that a tree that represents 10^10 files with only a few objects is refused before it uses up the
// memory.
func TestTreeBomb(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	repo, err := tr.log.openRepository(t.Context(), newMemory())
	tr.check(err)
	err = repo.crossed(emptyTree.String(), tr.bomb(10), func(merge.File) error { return nil })
	if !errors.Is(err, history.ErrTooMany) {
		t.Error(err)
	}
}

// TestHistoryBomb checks that a history in which commits repeatedly create and remove 10^5 files is refused after a
// few commits.
func TestHistoryBomb(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	base := tr.git("rev-parse", "HEAD")
	tip, full, empty := base, tr.bomb(5), tr.git("rev-parse", "HEAD^{tree}")
	for range mostTouched/100_000/2 + 1 {
		tip = tr.git("commit-tree", "-p", tip, "-m", "made", full)
		tip = tr.git("commit-tree", "-p", tip, "-m", "removed", empty)
	}
	if _, err := tr.log.Touched(t.Context(), base, tip); !errors.Is(err, history.ErrTooMany) {
		t.Error(err)
	}
}

// TestRemoteLeavesChild checks that a command is considered successful even if one of its child processes keeps the
// output open.
func TestRemoteLeavesChild(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "git")
	script := "#!/bin/sh\necho done\nsleep 20 > /dev/null < /dev/null &\nexit 0\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := (&repository{git: t.TempDir()}).runRemote(t.Context(), program, "fetch")
	if err != nil || out != "done\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestCompare compares commits of a random history, in which many pairs have several merge bases, and checks the
// result against git merge-base and git rev-list.
func TestCompare(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	repo, err := tr.log.openRepository(t.Context(), newMemory())
	tr.check(err)
	random := rand.New(rand.NewPCG(1, 2))
	folder := tr.git("rev-parse", "HEAD^{tree}")
	all := []string{tr.git("rev-parse", "HEAD")}
	for i := range 24 {
		args := []string{"commit-tree", "-m", fmt.Sprint(i), folder}
		recent := all[max(0, len(all)-4):]
		for _, parent := range random.Perm(len(recent))[:min(len(recent), 1+i%2)] {
			args = append(args, "-p", recent[parent])
		}
		all = append(all, tr.git(args...))
	}
	several := 0
	for range 30 {
		m := &history.MergeInput{Ours: all[random.IntN(len(all))], Theirs: all[random.IntN(len(all))]}
		if m.Ours == m.Theirs {
			continue
		}
		tr.check(repo.compare(m))
		bases := strings.Fields(tr.git("merge-base", "--all", m.Ours, m.Theirs))
		if len(bases) > 1 {
			several++
		}
		tr.equal("base", m.Base, tr.git("merge-base", m.Ours, m.Theirs))
		tr.equal("counts", fmt.Sprintf("%d\t%d", m.Ahead, m.Behind), tr.git("rev-list", "--count", "--left-right", m.Ours+"..."+m.Theirs))
	}
	if several == 0 {
		t.Error("no pair has several merge bases")
	}
	foreign := &history.MergeInput{Ours: all[0], Theirs: tr.git("commit-tree", "-m", "foreign", folder)}
	if err := repo.compare(foreign); !errors.Is(err, history.ErrForeign) || foreign.Ahead != 0 || foreign.Behind != 0 {
		t.Errorf("%v, %+v", err, foreign)
	}
}

// TestOwnRef checks that our own refs are set and removed in the same way as Git's, even if Git has packed them, and
// that another program's locks on them are respected.
func TestOwnRef(t *testing.T) {
	t.Parallel()
	tr := newTree(t, Config{})
	repo, err := tr.log.openRepository(t.Context(), newMemory())
	tr.check(err)
	one := plumbing.NewHash(tr.git("rev-parse", "HEAD"))
	two := plumbing.NewHash(tr.git("commit-tree", "-m", "two", "HEAD^{tree}"))
	tr.check(repo.setRef(remoteRef, hash{}))
	for _, to := range []hash{one, two, one, {}, two} {
		tr.check(repo.setRef(remoteRef, to))
		tr.equal("ref", tr.git("for-each-ref", "--format=%(objectname)", remoteRef), name(to))
		tr.git("pack-refs", "--all", "--prune")
	}
	lock := ".git/" + remoteRef + ".lock"
	tr.write(lock, "")
	if err := repo.setRef(remoteRef, one); !errors.Is(err, fs.ErrExist) {
		t.Errorf("with a lock: %v", err)
	}
	tr.check(os.Remove(tr.path(lock)))
	tr.equal("ref", tr.git("rev-parse", remoteRef), two.String())
	tr.check(os.Rename(tr.path(".git"), tr.path("moved")))
	if err := repo.setRef(remoteRef, one); err == nil {
		t.Error("set in a repository that is gone")
	}
	if _, err := os.Stat(tr.path(".git")); err == nil {
		t.Error("created .git again")
	}
}
