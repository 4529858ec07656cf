package gitlog

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mailtree/maildir/history"
)

// ownFolder is the folder in .git that our git commands use as the repository. It has its own configuration and
// attributes, but shares the objects, index and work tree of .git. Therefore .git/config, the files that it includes,
// and .gitattributes cannot make our commands run a filter, hook or monitor, or convert any content. Only commands that
// move refs use the real repository (importer, plainly).
const ownFolder = "mailtree-git"

// ownConfig is the configuration of ownFolder. The setting for the executable bit is copied from .git/config. The pack
// settings limit the memory that maintenance uses to less than 128 MB (measured: 97 MB with 100,000 messages).
const ownConfig = `[core]
	repositoryformatversion = 0
	bare = false
	filemode = %v
	fsync = none
	fsmonitor =
	untrackedCache = false
	splitIndex = false
	bigFileThreshold = 1m
	packedGitLimit = 32m
	packedGitWindowSize = 4m
	deltaBaseCacheLimit = 16m
[pack]
	threads = 1
	windowMemory = 8m
	deltaCacheSize = 8m
`

// ownSSH is the file in ownFolder that Git runs instead of ssh. Git requires a single program whose name is ssh.
const ownSSH = "ssh"

const ownSSHText = `#!/bin/sh
exec ssh -oBatchMode=yes "$@"
`

// ownAttributes takes precedence over every .gitattributes file.
const ownAttributes = "* -text -eol -ident -filter -working-tree-encoding\n"

// commandLimit is the time limit for a git command that handles the paths of a round. lookLimit is the time limit for
// a command that reads the whole tree.
const (
	commandLimit = 2 * time.Minute
	lookLimit    = 30 * time.Minute
)

// makeOwn creates ownFolder if necessary, and restores any of its files that have been changed. Several processes may
// use ownFolder at the same time.
func (r *repository) makeOwn() error {
	if r.owns {
		return nil
	}
	home := r.path(ownFolder)
	names, err := os.ReadDir(home)
	for _, d := range names {
		name := d.Name()
		if !slices.Contains([]string{"HEAD", "config", "refs", "info", ownSSH}, name) && !strings.HasPrefix(name, "sharedindex.") {
			err = fs.ErrExist
		}
	}
	if err != nil {
		err = os.RemoveAll(home)
	}
	for _, dir := range []string{"", "refs", "info"} {
		if made := os.Mkdir(filepath.Join(home, dir), 0o700); !errors.Is(made, fs.ErrExist) {
			err = errors.Join(err, made)
		}
	}
	err = errors.Join(err,
		r.putOwn("HEAD", "ref: refs/heads/none\n", 0o600),
		r.putOwn("info/attributes", ownAttributes, 0o600),
		r.putOwn(ownSSH, ownSSHText, 0o700),
		r.putOwn("config", fmt.Sprintf(ownConfig, r.config.fileMode), 0o600))
	bases, _ := filepath.Glob(r.path("sharedindex.*")) // the base files of a split index
	for _, base := range bases {
		if gone := os.Symlink(base, filepath.Join(home, filepath.Base(base))); !errors.Is(gone, fs.ErrExist) {
			err = errors.Join(err, gone)
		}
	}
	r.owns = err == nil
	return err
}

// putOwn atomically replaces a file in ownFolder, unless the file already contains that text.
func (r *repository) putOwn(name, text string, mode fs.FileMode) error {
	name = ownFolder + "/" + name
	if b, err := readSmall(r.path(name)); err == nil && string(b) == text {
		return nil
	}
	return r.writeWhole(name, []byte(text), mode)
}

// command returns a git command that uses ownFolder as its repository.
func (r *repository) command(ctx context.Context, args ...string) (*exec.Cmd, error) {
	program, err := r.program()
	if err != nil {
		return nil, err
	}
	if err := r.makeOwn(); err != nil {
		return nil, err
	}
	c := gitCommand(ctx, program, r.path(ownFolder), args...)
	c.Env = append(c.Env, "GIT_DIR="+c.Dir, "GIT_OBJECT_DIRECTORY="+r.path("objects"), "GIT_WORK_TREE="+r.dir,
		"GIT_INDEX_FILE="+r.path("index"), "GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1")
	c.Dir = r.dir
	return c, nil
}

// run runs a git command and returns its output. It adds env to the command's environment.
func (r *repository) run(in io.Reader, env []string, args ...string) (said []byte, err error) {
	limit := commandLimit
	if r.low {
		limit = lookLimit
	}
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	_, err = r.execute(ctx, in, func(out io.Reader) (err error) {
		said, err = io.ReadAll(out)
		return err
	}, env, args...)
	return said, err
}

// stream runs a git command that prints NUL-terminated records, and passes them to each. If each returns an error,
// stream stops and returns that error, or nil for fs.SkipAll. It returns history.ErrTooMany if the command needs more
// memory than r.memory. The function each must not retain the record.
func (r *repository) stream(each func(record []byte) error, args ...string) error {
	ctx, cancel := context.WithTimeout(r.ctx, lookLimit)
	defer cancel()
	warned, err := r.execute(ctx, nil, func(out io.Reader) error { return eachRecord(out, each) }, nil, args...)
	var e *gitError
	if errors.As(err, &e) && r.memory > 0 && strings.Contains(e.said, "ut of memory") {
		return history.ErrTooMany
	}
	switch {
	case errors.Is(err, fs.SkipAll):
		return nil
	case err == nil:
		return unread(warned)
	}
	return err
}

// execute runs a git command, passes its output to read, and returns the command's warnings. If read returns an
// error, execute terminates the command.
func (r *repository) execute(
	ctx context.Context, in io.Reader, read func(io.Reader) error, env []string, args ...string,
) (warned string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := args
	if r.low {
		all = append([]string{"-c", "core.fsync=all"}, args...)
	}
	c, err := r.command(ctx, all...)
	if err != nil {
		return "", err
	}
	if r.memory > 0 {
		c.Args = append([]string{"sh", "-c", `ulimit -d $0 && exec "$@"`, strconv.Itoa(r.memory), c.Path}, c.Args[1:]...)
		c.Path = "/bin/sh"
	}
	var said bytes.Buffer
	c.Stdin, c.Stderr = in, &said
	c.Env = append(c.Env, env...)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return "", err
	}
	if r.low { // lowest priority
		_ = unix.Setpriority(unix.PRIO_PGRP, c.Process.Pid, 19)
	}
	if err := read(out); err != nil {
		cancel()
		_ = c.Wait()
		return "", err
	}
	if err = c.Wait(); err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if err != nil {
		err = &gitError{args: args, said: said.String(), err: err}
	}
	return said.String(), err
}

// eachRecord reads NUL-terminated records from in and passes them to each.
func eachRecord(in io.Reader, each func([]byte) error) error {
	records := bufio.NewScanner(in)
	records.Buffer(nil, maxObject)
	records.Split(func(data []byte, _ bool) (int, []byte, error) {
		if end := bytes.IndexByte(data, 0); end >= 0 {
			return end + 1, data[:end], nil
		}
		return 0, nil, nil
	})
	for records.Scan() {
		if err := each(records.Bytes()); err != nil {
			return err
		}
	}
	return records.Err()
}

// gitError is the error for a git command that failed.
type gitError struct {
	args []string
	said string
	err  error
}

func (e *gitError) Error() string {
	said := oneLine(e.said, 500)
	// If Git printed a message, the exit status is not needed.
	if exit := (*exec.ExitError)(nil); said != "" && errors.As(e.err, &exit) && exit.Exited() {
		return fmt.Sprintf("git %s: %s", e.args[0], said)
	}
	return fmt.Sprintf("git %s: %v: %s", e.args[0], e.err, said)
}

func (e *gitError) Unwrap() error { return e.err }

// Is reports whether target is history.ErrNoContact and Git's message says that it could not read from the other
// repository. In that case, Git has sent nothing to that repository.
func (e *gitError) Is(target error) bool {
	return target == history.ErrNoContact && strings.Contains(e.said, "Could not read from remote repository")
}

// gitCommand returns a Git command on the repository dir that runs no hook and reads neither the system's nor the
// user's configuration. When ctx ends, the command's whole process group is terminated, and Git removes its temporary
// files. GIT_DIR is relative. If it were absolute and the project were removed while Git is running, Git would recreate
// the project's folders.
func gitCommand(ctx context.Context, program, dir string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, program, append([]string{
		"--no-pager", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=", "-c", "gc.auto=0",
	}, args...)...)
	c.Dir = dir
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "GIT_DIR=.", "GIT_ATTR_NOSYSTEM=1",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=" + os.DevNull, "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1",
		// By default, glibc releases memory after each object, which doubles the time that fast-import takes.
		"MALLOC_TRIM_THRESHOLD_=67108864",
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = 2 * time.Second
	return c
}

// programs contains the paths of git programs that have been checked and are recent enough.
var programs sync.Map

// findGit returns the path of the git program, which must be version 2.34 or newer. The error is a *hold.
func findGit() (string, error) {
	program, err := exec.LookPath("git")
	if err != nil {
		return "", noProgram()
	}
	if _, known := programs.Load(program); known {
		return program, nil
	}
	out, err := gitCommand(context.Background(), program, os.TempDir(), "version").Output()
	if err != nil {
		return "", err
	}
	if text := strings.TrimPrefix(strings.TrimSpace(string(out)), "git version "); !isRecent(text) {
		return "", notAudited("the git program on the server's PATH is version %s, but the server needs Git 2.34 or newer. "+
			"Upgrade Git; mail keeps working.", oneLine(text, 40))
	}
	programs.Store(program, true)
	return program, nil
}

// isRecent reports whether a version of Git has the commands and options that this package needs.
func isRecent(version string) bool {
	var major, minor int
	_, err := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return err == nil && (major > 2 || major == 2 && minor >= 34)
}

// noProgram returns the *hold for a git program that has disappeared since the Log was opened. If there is no git
// program when a Log is opened, choose selects the embedded engine. The *hold wraps exec.ErrNotFound.
func noProgram() *hold {
	h := notAudited("the git program is no longer on the server's PATH. Install Git 2.34 or newer, or restart the " +
		"server, which then commits without the git program; mail keeps working.")
	h.cause = exec.ErrNotFound
	return h
}

// noSync returns the *hold for a call that needs the git program if the embedded engine is in use.
func noSync() *hold {
	return waiting("To sync this mail, the server needs the git program. Install Git 2.34 or newer, then restart the server.")
}

// process is a running program that responds to requests. The zero process has not been started.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	out    io.Closer // closes stdout
}

// startProcess starts the program.
func startProcess(c *exec.Cmd) (t process, err error) {
	t.cmd = c
	if t.stdin, err = c.StdinPipe(); err != nil {
		return process{}, err
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return process{}, err
	}
	t.stdout, t.out = bufio.NewReaderSize(out, 64<<10), out
	return t, nil
}

// close ends the program, even if it is still writing a response.
func (t *process) close() (err error) {
	if t.cmd != nil {
		t.stdin.Close()
		t.out.Close()
		err = t.cmd.Wait()
		*t = process{}
	}
	return err
}
