package gitlog

import (
	"bufio"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mailtree/maildir/gitlog/object"
)

// nextRef is the ref at the newest commit of a round before the branch moves there, so that a person's
// prune keeps it. The next round moves nextRef.
const nextRef = "refs/mailtree/next"

// importer gives the objects of a round to `git fast-import`, which writes them into one pack and then
// moves nextRef. The program starts with the first object. Whoever makes an importer calls discard at
// the end.
type importer struct {
	ctx     context.Context
	repo    *repository
	program func() (string, error)

	cmd  *exec.Cmd // nil: not started, or ended
	pipe io.Closer
	in   *bufio.Writer
	said strings.Builder
	sent bool          // a commit was given
	cost time.Duration // processor time of the program
}

// start starts the program where it does not run yet.
func (i *importer) start() error {
	if i.cmd != nil {
		return nil
	}
	program, err := i.program()
	if err != nil {
		return noProgram()
	}
	// Only a fast-import of ours writes nextRef, and the store has one server: what is locked was killed.
	if err := ignoreGone(os.Remove(i.repo.path(nextRef + ".lock"))); err != nil {
		return err
	}
	c := gitCommand(i.ctx, program, i.repo.git, "-c", "core.fsync=all", "-c", "fastimport.unpackLimit=0", "-c", "core.bigFileThreshold=1m",
		"fast-import", "--quiet", "--done", "--force", "--date-format=raw")
	c.Stdout, c.Stderr = &i.said, &i.said
	pipe, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return err
	}
	i.cmd, i.pipe, i.in = c, pipe, bufio.NewWriterSize(pipe, 64<<10)
	return nil
}

// blob gives the content of a file.
func (i *importer) blob(data []byte) error {
	if err := i.start(); err != nil {
		return err
	}
	fmt.Fprintf(i.in, "blob\ndata %d\n", len(data))
	_, err := i.in.Write(data)
	i.in.WriteByte('\n')
	return err
}

// giveFile gives the first size bytes of in as a blob and reports whether the blob has the wanted name.
func (i *importer) giveFile(in io.Reader, size int64, want hash) (bool, error) {
	if err := i.start(); err != nil {
		return false, err
	}
	fmt.Fprintf(i.in, "blob\ndata %d\n", size)
	sum := sha1.New()
	sum.Write(object.Header(object.KindBlob, size))
	n, err := io.Copy(io.MultiWriter(i.in, sum), io.LimitReader(in, size))
	if n < size { // the program wants what it was promised
		if _, err := io.CopyN(i.in, zeros{}, size-n); err != nil {
			return false, err
		}
	}
	i.in.WriteByte('\n')
	return err == nil && hash(sum.Sum(nil)) == want, nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// commit gives a commit: of the first one the parent is base, of the others the one before.
func (i *importer) commit(base hash, c object.Commit, makes []version) error {
	if err := i.start(); err != nil {
		return err
	}
	fmt.Fprintf(i.in, "commit %s\nauthor %s %s\ncommitter %s %s\ndata %d\n%s\n", nextRef,
		c.Author, object.GitTime(c.Written), c.Committer, object.GitTime(c.Made), len(c.Message), c.Message)
	if !i.sent && !base.IsZero() {
		fmt.Fprintf(i.in, "from %s\n", base)
	}
	i.sent = true
	for _, v := range makes {
		if v.is.Mode == 0 {
			fmt.Fprintf(i.in, "D %s\n", quotePath(v.path))
		}
	}
	for _, v := range makes {
		if v.is.Mode != 0 {
			fmt.Fprintf(i.in, "M %o %s %s\n", v.is.Mode, v.is.Hash, quotePath(v.path))
		}
	}
	return nil
}

// quotePath writes a path as fast-import reads it.
func quotePath(path string) string {
	if strings.IndexFunc(path, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r == 0x7f }) < 0 {
		return path
	}
	b := []byte{'"'}
	for _, c := range []byte(path) {
		if c < ' ' || c == '"' || c == '\\' || c == 0x7f {
			b = fmt.Appendf(b, "\\%03o", c)
		} else {
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}

// finish waits until all objects are durable and returns the newest commit.
func (i *importer) finish() (newest hash, err error) {
	i.in.WriteString("done\n")
	if err = i.endProgram(i.in.Flush()); err != nil {
		return hash{}, err
	}
	newest, err = i.repo.ref(nextRef)
	if err == nil && newest.IsZero() {
		err = errors.New("git fast-import has made no commit")
	}
	return newest, err
}

// discard ends a program that still runs: nothing was given to it that anything refers to.
func (i *importer) discard() {
	if i.cmd != nil {
		_ = i.endProgram(nil)
	}
}

func (i *importer) endProgram(err error) error {
	c := i.cmd
	i.cmd = nil
	err = errors.Join(err, i.pipe.Close())
	if failed := c.Wait(); failed != nil {
		_ = os.Remove(i.repo.path("fast_import_crash_" + strconv.Itoa(c.Process.Pid)))
		err = fmt.Errorf("git fast-import: %w: %s", failed, oneLine(i.said.String(), 500))
	}
	if state := c.ProcessState; state != nil {
		i.cost += state.UserTime() + state.SystemTime()
	}
	return err
}

// noProgram says that there is no Git.
func noProgram() *hold {
	return notAudited("there is no git program on the server's PATH. Install Git 2.38 or newer; the mail keeps working.")
}

// gitCommand is a command of Git that runs no hook and sees neither the system's configuration nor the
// user's. Its processes are a group of their own, which ctx's end terminates: Git removes its temporary
// files then.
func gitCommand(ctx context.Context, program, dir string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, program, append([]string{
		"--no-pager", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "gc.auto=0",
	}, args...)...)
	c.Dir = dir
	c.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C", "GIT_DIR=" + dir,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=" + os.DevNull, "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1",
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = 2 * time.Second
	return c
}

// lowPriority lets the processes of a command work when nobody else wants to.
func lowPriority(c *exec.Cmd) { _ = unix.Setpriority(unix.PRIO_PGRP, c.Process.Pid, 19) }
