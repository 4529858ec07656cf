package gitlog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mailtree/maildir/history"
	"mailtree/maildir/merge"
	"mailtree/maildir/tree"
)

// Our own refs. They protect the objects that they refer to from `git prune`.
const (
	remoteRef  = "refs/mailtree/remote"  // the shared branch when it was last fetched or pushed
	claimsRef  = "refs/mailtree/claims"  // the list of claims when it was last fetched or pushed
	claimedRef = "refs/mailtree/claimed" // the list of claims that the tree matches
)

const (
	remoteName  = "origin"
	remoteLimit = 10 * time.Minute // time limit for a fetch or push
	remoteEnd   = time.Second / 2  // time between SIGTERM and SIGKILL; a stopping server waits for the command
	remoteDrain = 3 * time.Second  // how long to wait for a command's helper processes to end, even on a busy machine
	mostCrossed = 500_000          // maximum number of files that a merge changes or a joined project contains
	mostTouched = 4 * mostCrossed  // maximum number of files changed between two merges, counted per commit
	mostBytes   = 8 << 30          // maximum size, in bytes, of the files that a merge writes, or of a joined project
	mostMemory  = 512 << 10        // KiB of memory for comparing remote commits; mostCrossed files take 300 MiB
	mostSaid    = 64 << 10         // maximum number of bytes to keep of a git command's output
)

// remoteCommand returns a git command that talks to another repository. Unlike all other commands, it uses the user's
// configuration and environment, for credentials and proxies. It runs no hook, has no terminal, and runs no program
// that prompts the user: an empty GIT_ASKPASS takes precedence over core.askPass and SSH_ASKPASS. It uses only
// protocols that Git supports without a configured helper.
func remoteCommand(ctx context.Context, program, git string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, program, append([]string{
		"--no-pager", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=", "-c", "gc.auto=0",
		"-c", "maintenance.auto=false", "-c", "core.fsync=all", "-c", "transfer.fsckObjects=true", "-c", "fetch.fsckObjects=true",
		"-c", "push.followTags=false", "-c", "push.gpgSign=false", "-c", "push.recurseSubmodules=no", "-c", "fetch.prune=false", "-c", "fetch.unpackLimit=1",
		"-c", "submodule.recurse=false", "-c", "http.lowSpeedLimit=100", "-c", "http.lowSpeedTime=60",
		"-c", "core.askPass=", "-c", "credential.interactive=false",
	}, args...)...)
	c.Dir = git
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(placeVariables, name)
	})
	c.Env = append(c.Env, "GIT_DIR=.", "LC_ALL=C", "LANGUAGE=", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=",
		"SSH_ASKPASS_REQUIRE=never", "GCM_INTERACTIVE=never", // keeps Git Credential Manager from opening windows
		"GIT_ALLOW_PROTOCOL=file:ssh:https:git", "GIT_NO_LAZY_FETCH=1")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // this also creates a process group
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = remoteDrain
	return c
}

// placeVariables lists the environment variables that determine Git's repository and configuration, as printed by
// `git rev-parse --local-env-vars`.
var placeVariables = []string{
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_OBJECT_DIRECTORY", "GIT_DIR",
	"GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE", "GIT_INDEX_FILE", "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE",
	"GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_COMMON_DIR",
}

// limited keeps only the first mostSaid bytes written to it.
type limited struct{ strings.Builder }

func (l *limited) Write(b []byte) (int, error) {
	l.Builder.Write(b[:min(len(b), mostSaid-l.Len())])
	return len(b), nil
}

// runRemote runs a remoteCommand and returns its output. The error quotes Git's message, without user names and
// passwords in URLs.
func (r *repository) runRemote(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, remoteLimit, fmt.Errorf("git %s did not finish within %v", args[0], remoteLimit))
	defer cancel()
	c := remoteCommand(ctx, program, r.git, args...)
	if err := r.batchSSH(ctx, c); err != nil {
		return "", fmt.Errorf("git %s: prepare ssh: %w", args[0], err)
	}
	var out, said limited
	c.Stdout, c.Stderr = &out, &said
	end := c.Cancel
	var killing *time.Timer
	c.Cancel = func() error {
		killing = time.AfterFunc(remoteEnd, func() { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
		return end()
	}
	err := c.Run()
	if killing != nil {
		killing.Stop()
	}
	if err != nil && ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrWaitDelay) { // the command succeeded, but a child process still has its output open
		err = nil
	}
	if err != nil {
		err = &gitError{args: args, said: withoutPassword(said.String()), err: err}
	}
	return out.String(), err
}

// batchSSH makes a remoteCommand run ssh in batch mode, unless the user has configured how to run ssh. Git runs the
// program in GIT_SSH only if core.sshCommand is not set, so Git itself reads the user's configuration at that moment.
// If the program cannot be executed, for example because the file system is mounted with noexec, batchSSH asks Git for
// core.sshCommand.
func (r *repository) batchSSH(ctx context.Context, c *exec.Cmd) error {
	c.Env = slices.DeleteFunc(c.Env, func(v string) bool { return v == "GIT_SSH_COMMAND=" }) // with an empty value, Git would try to run ""
	if os.Getenv("GIT_SSH_COMMAND") != "" || os.Getenv("GIT_SSH") != "" {
		return nil
	}
	if err := r.makeOwn(); err != nil {
		return err
	}
	program := r.path(ownFolder + "/" + ownSSH)
	if unix.Access(program, unix.X_OK) == nil {
		c.Env = append(c.Env, "GIT_SSH="+program)
		return nil
	}
	if own, _ := remoteCommand(ctx, c.Path, r.git, "config", "--get", "core.sshCommand").Output(); len(own) == 0 {
		c.Env = append(c.Env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	}
	return nil
}

// withoutPassword removes the user names and passwords from the URLs in text.
func withoutPassword(text string) string {
	words := strings.Fields(text)
	for i, w := range words {
		bare := strings.Trim(w, "'\",.:()")
		if u, err := url.Parse(bare); err == nil && u.Scheme != "" && u.User != nil {
			u.User = nil
			words[i] = strings.Replace(w, bare, u.String(), 1)
		}
	}
	return strings.Join(words, " ")
}

// Origin implements history.Remote.
func (l *Log) Origin() string {
	text, err := readSmall(l.newRepository(context.Background(), newMemory()).path("config"))
	if err != nil {
		return ""
	}
	c, err := parseConfig(text)
	if err != nil {
		return ""
	}
	return withoutPassword(c.Section("remote").Subsection(remoteName).Option("url"))
}

// Ready implements history.Remote.
func (l *Log) Ready() error {
	if _, err := l.git(); err != nil {
		return unavailable(err)
	}
	if l.Origin() == "" {
		return history.ErrNoRemote
	}
	return nil
}

// remote opens the repository for a command that contacts the shared repository. It also returns HEAD and the path of
// the git program.
func (l *Log) remote(ctx context.Context) (repo *repository, at head, program string, err error) {
	if repo, program, err = l.reach(ctx); err != nil {
		return nil, head{}, "", err
	}
	if err = repo.busy(); err == nil {
		at, err = l.branch(repo)
	}
	return repo, at, program, unavailable(err)
}

// reach is like remote, but for commands that do not need the branch.
func (l *Log) reach(ctx context.Context) (repo *repository, program string, err error) {
	if l.Origin() == "" {
		return nil, "", history.ErrNoRemote
	}
	if repo, err = l.openRepository(ctx, newMemory()); err == nil {
		program, err = l.git()
	}
	return repo, program, unavailable(err)
}

// Fetch implements history.Remote.
func (l *Log) Fetch(ctx context.Context) (rewritten bool, err error) {
	repo, at, program, err := l.remote(ctx)
	if err != nil {
		return false, err
	}
	before, err := repo.ownRef(remoteRef)
	if err == nil {
		_, err = repo.ownRef(claimsRef)
	}
	if err != nil {
		return false, err
	}
	l.step("fetch")
	claims, force := true, false
	err = repo.fetch(program, at.branch, force, claims)
	if lacks(err, claimsRef) {
		claims = false
		if err = repo.setRef(claimsRef, hash{}); err == nil {
			err = repo.fetch(program, at.branch, force, claims)
		}
	}
	if wasRefused(err) {
		force = true
		err = repo.fetch(program, at.branch, force, claims)
	}
	if lacks(err, at.branch) { // the shared repository is empty
		return !before.IsZero(), repo.setRef(remoteRef, hash{})
	}
	l.step("fetched")
	now, _ := repo.ref(remoteRef)
	if now == before {
		return false, err
	}
	l.noteUnpacked(packWeight)
	if err == nil && force && !before.IsZero() {
		rewritten, err = repo.follows(now, before)
		rewritten = !rewritten && err == nil
	}
	return rewritten, err
}

// lacks reports whether git fetch failed because a ref is missing from the other repository.
func lacks(err error, ref string) bool {
	var e *gitError
	return errors.As(err, &e) && strings.Contains(e.said, "couldn't find remote ref "+ref)
}

// wasRefused reports whether git fetch ended normally but did not update a ref, for example because the other
// repository's branch no longer contains the commit that was fetched before.
func wasRefused(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == 1
}

// ownRef is like ref, but for one of our own refs, which only our git commands write, one at a time. It removes any
// lock or damaged file that was left behind by a power failure, or by a git command that outlived its server.
func (r *repository) ownRef(name string) (hash, error) {
	if err := tree.IgnoreGone(os.Remove(r.path(name + ".lock"))); err != nil {
		return hash{}, err
	}
	at, err := r.ref(name)
	if holdOf(err) != nil {
		err = os.Remove(r.path(name))
	}
	return at, err
}

// fetch fetches a branch into remoteRef and, if claims is set, the list of claims into claimsRef. If branch is "", it
// fetches only the list. Unless force is set, Git refuses to move remoteRef to a commit that does not descend from the
// current one. When fetch returns, the fetched objects are verified and durable.
func (r *repository) fetch(program, branch string, force, claims bool) error {
	args := []string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
		"--no-auto-maintenance", "--show-forced-updates", "--refmap=", "--", remoteName}
	if branch != "" {
		refs := branch + ":" + remoteRef
		if force {
			refs = "+" + refs
		}
		args = append(args, refs)
	}
	if claims {
		args = append(args, "+"+claimsRef+":"+claimsRef)
	}
	_, err := r.runRemote(r.ctx, program, args...)
	return err
}

// Push implements history.Remote.
func (l *Log) Push(ctx context.Context) error {
	repo, at, program, err := l.remote(ctx)
	if err != nil || at.commit.IsZero() {
		return err
	}
	l.step("push")
	_, err = repo.runRemote(ctx, program, "push", "--quiet", "--no-verify", "--", remoteName, at.commit.String()+":"+at.branch)
	l.step("pushed")
	var e *gitError
	switch {
	case errors.As(err, &e) && isBehind(e.said):
		return history.ErrBehind
	case err != nil:
		return err
	}
	return repo.setRef(remoteRef, at.commit)
}

// isBehind reports whether git push failed because the remote branch has moved, perhaps during the push.
func isBehind(said string) bool {
	if strings.Contains(said, "Unable to create") && !strings.Contains(said, "File exists") {
		return false // no process holds the lock: the remote disk is full, or we have no write permission there
	}
	for _, sign := range []string{"(fetch first)", "(non-fast-forward)", "(stale info)", "cannot lock ref", "failed to update ref",
		"incorrect old value"} {
		if strings.Contains(said, sign) {
			return true
		}
	}
	return false
}

// isDeclined reports whether git push failed because a hook or rule on the host refuses all pushes to the ref.
func isDeclined(said string) bool {
	_, why, rejected := strings.Cut(said, "[remote rejected]")
	return rejected && slices.ContainsFunc([]string{"declined", "hidden ref", "prohibited", "protected"}, func(sign string) bool {
		return strings.Contains(why, sign)
	})
}

// setRef moves one of our own refs, or removes it if the hash is zero. Like git update-ref, it writes the ref's lock
// file and renames it into place. This way, a concurrent `git pack-refs` does not remove the new value.
func (r *repository) setRef(name string, to hash) error {
	if to.IsZero() {
		if at, err := r.ref(name); err == nil && at.IsZero() {
			return nil
		}
		return r.plainly(nil, "update-ref", "-d", name) // also removes the ref from packed-refs
	}
	err := r.writeRef(name, to)
	if err != nil {
		err = fmt.Errorf("update %s: %w", name, err)
	}
	return err
}

func (r *repository) writeRef(name string, to hash) error {
	file := r.path(name)
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil && !errors.Is(err, fs.ErrExist) { // do not create .git again
		return err
	}
	lock := file + ".lock"
	var f *os.File
	err := patiently(r.ctx, refPatience, func() (err error) {
		f, err = os.OpenFile(lock, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_SYNC, 0o644)
		return err
	})
	if err != nil {
		return err
	}
	_, err = f.WriteString(to.String() + "\n")
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(lock, file)
	}
	if err != nil {
		err = errors.Join(err, tree.IgnoreGone(os.Remove(lock)))
	}
	return err
}

// Compare implements history.Remote.
func (l *Log) Compare(ctx context.Context) (*history.MergeInput, error) {
	repo, err := l.openRepository(ctx, newMemory())
	if err != nil {
		return nil, unavailable(err)
	}
	defer repo.Close()
	at, err := l.branch(repo)
	if err == nil {
		err = repo.busy()
	}
	if err != nil {
		return nil, unavailable(err)
	}
	theirs, err := repo.ref(remoteRef)
	if err != nil {
		return nil, err
	}
	m := &history.MergeInput{Ours: name(at.commit), Theirs: name(theirs)}
	switch {
	case theirs == at.commit:
		m.Base = m.Ours
	case at.commit.IsZero():
	case theirs.IsZero():
		var out []byte
		if out, err = repo.run(nil, nil, "rev-list", "--count", m.Ours, "--"); err == nil {
			_, err = fmt.Sscan(string(out), &m.Ahead)
			m.Own = true
		}
	default:
		err = repo.compare(m)
	}
	return m, err
}

// name returns the name of a commit, or "" for the zero hash.
func name(h hash) string {
	if h.IsZero() {
		return ""
	}
	return h.String()
}

// compare fills in the rest of the merge input if the two commits differ.
func (r *repository) compare(m *history.MergeInput) error {
	err := r.relate(m)
	if err != nil {
		return err
	}
	ours := map[string]merge.Entry{}
	if m.Base != m.Ours {
		err = r.crossed(m.Base, m.Ours, func(f merge.File) error {
			ours[f.Path] = f.Theirs
			m.Own = m.Own || merge.Crosses(f.Path)
			return nil
		})
	}
	if err == nil && m.Base != m.Theirs {
		err = r.crossed(m.Base, m.Theirs, func(f merge.File) error {
			f.Ours = f.Base
			if is, changed := ours[f.Path]; changed {
				f.Ours = is
			}
			if m.Files = append(m.Files, f); len(m.Files) > mostCrossed {
				return history.ErrTooMany
			}
			return nil
		})
	}
	return err
}

// within returns a view of the repository whose commands may each use up to memory KiB of memory.
func (r *repository) within(memory int) *repository {
	view := *r
	view.memory = memory
	return &view
}

// relate sets Base, Ahead and Behind for the commits Ours and Theirs. If the commits have no common ancestor, it
// returns history.ErrForeign. If a side has no commits of its own, its commit is an ancestor of the other side's, and
// therefore the merge base. Otherwise, relate considers the boundaries: the common ancestors with a child that only one
// side contains. Every merge base is a boundary, so a single boundary is the merge base.
func (r *repository) relate(m *history.MergeInput) error {
	of := map[string]int{} // the number of commits by Git's mark
	boundary := ""
	err := r.stream(func(record []byte) error {
		mark, name := string(record[:min(1, len(record))]), string(record[min(1, len(record)):])
		if of[mark]++; mark == "-" {
			boundary = name
		}
		return nil
	}, "log", "-z", "--boundary", "--format=tformat:%m%H", m.Ours+"..."+m.Theirs, "--")
	base := boundary
	switch {
	case err != nil:
	case of["-"] == 0:
		err = history.ErrForeign
	case of["<"] == 0:
		base = m.Ours
	case of[">"] == 0:
		base = m.Theirs
	case of["-"] > 1:
		var out []byte
		out, err = r.run(nil, nil, "merge-base", m.Ours, m.Theirs)
		base = strings.TrimSpace(string(out))
	}
	if err == nil {
		m.Base, m.Ahead, m.Behind = base, of["<"], of[">"]
	}
	return err
}

// crossed calls each, with Base and Theirs set, for every file that differs between base and a commit.
func (r *repository) crossed(base, commit string, each func(merge.File) error) error {
	var f []string // ":mode mode hash hash status"
	return r.within(mostMemory).stream(func(record []byte) error {
		if f == nil {
			if f = strings.Fields(strings.TrimPrefix(string(record), ":")); len(f) != 5 {
				return fmt.Errorf("unexpected output from git diff-tree: %q", record)
			}
			return nil
		}
		at := f
		f = nil
		return each(merge.File{Path: string(record), Base: crossing(anyEntry(at[0], at[2])), Theirs: crossing(anyEntry(at[1], at[3]))})
	}, "diff-tree", "--raw", "-z", "--no-renames", "--no-abbrev", "-r", base, commit)
}

// crossing converts an entry to the form that package merge uses.
func crossing(e entry) merge.Entry {
	if e.Mode == 0 {
		return merge.Entry{}
	}
	return merge.Entry{Mode: e.Mode, Hash: e.Hash.String()}
}

// Touched implements history.Remote. It ignores changes made in merge commits themselves, but not those in the merged
// commits.
func (l *Log) Touched(ctx context.Context, base, tip string) (map[string]time.Time, error) {
	repo, err := l.openRepository(ctx, newMemory())
	if err != nil {
		return nil, unavailable(err)
	}
	at, made, isTime, n := map[string]time.Time{}, time.Time{}, false, 0
	err = repo.within(mostMemory).stream(func(record []byte) error {
		path := strings.TrimPrefix(string(record), "\n")
		if n++; n > mostTouched {
			return history.ErrTooMany
		}
		switch {
		case path == "":
			isTime = true
		case isTime:
			made, isTime = unixTime(path), false
		case made.After(at[path]):
			at[path] = made
		}
		return nil
	}, "log", "-z", "--format=tformat:%x00%ct", "--name-only", "--no-renames", base+".."+tip, "--")
	return at, err
}

// Fits implements history.Remote.
func (l *Log) Fits(ctx context.Context, hashes []string) error {
	repo, err := l.openRepository(ctx, newMemory())
	if err != nil {
		return unavailable(err)
	}
	return repo.fits(hashes)
}

func (r *repository) fits(hashes []string) error {
	out, err := r.run(strings.NewReader(strings.Join(hashes, "\n")), nil, "cat-file", "--batch-check=%(objectsize)")
	if err != nil {
		return err
	}
	bytes := 0
	for _, size := range strings.Fields(string(out)) {
		n, _ := strconv.Atoi(size) // if an object is missing, reading it later reports the error
		if bytes += n; bytes > mostBytes {
			return history.ErrTooMany
		}
	}
	return nil
}

// Blobs implements history.Remote.
func (l *Log) Blobs(ctx context.Context, do func(read func(name string) ([]byte, error)) error) error {
	repo, err := l.openRepository(ctx, newMemory())
	if err != nil {
		return unavailable(err)
	}
	defer repo.Close()
	return do(func(name string) ([]byte, error) {
		data, err := repo.read("blob", name)
		if errors.Is(err, errNoObject) {
			err = fmt.Errorf("%w: %s", history.ErrNoFile, name)
		}
		return data, err
	})
}
