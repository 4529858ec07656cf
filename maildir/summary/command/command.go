// Package command summarizes a thread with a command that the user has configured, such as one that calls a model.
package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"
)

// These are the limits for a command.
const (
	Limit     = 30 * time.Second // maximum duration of a call, including the wait for its turn
	maxOutput = 16 << 10         // bytes
	atATime   = 2                // maximum number of commands that run at the same time
)

// Command is a shell command that reads a thread from its standard input and prints the summary. It is safe for
// concurrent use.
type Command struct {
	line  string
	limit time.Duration
	turns chan struct{}
}

// New returns a Command. It does not start anything. If limit is 0, Limit applies.
func New(line string, limit time.Duration) *Command {
	if limit == 0 {
		limit = Limit
	}
	return &Command{line: line, limit: limit, turns: make(chan struct{}, atATime)}
}

// Summarize runs the command. Its error says why there is no summary: the command failed, printed nothing or something
// other than text, or took too long. If the command takes too long, it is killed together with its child processes.
func (c *Command) Summarize(ctx context.Context, thread []byte) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit, fmt.Errorf("timed out after %v", c.limit))
	defer cancel()
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	out := &limited{left: maxOutput}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", c.line)
	cmd.Dir = "/"
	cmd.Stdin, cmd.Stdout = bytes.NewReader(thread), out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	said := out.data.String()
	text := strings.TrimSpace(strings.Map(printable, said))
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case out.left < 0:
		return "", fmt.Errorf("the output is longer than %d bytes", maxOutput)
	case err != nil:
		return "", err
	case text == "" || !utf8.ValidString(said):
		return "", errors.New("the output is empty or is not valid UTF-8")
	}
	return text, nil
}

// printable drops control characters other than line endings and tabs.
func printable(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return -1
	}
	return r
}

// limited keeps the first bytes written to it. left is the number of bytes that it can still keep, and is negative if
// it has dropped some.
type limited struct {
	data bytes.Buffer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	l.data.Write(b[:min(len(b), max(l.left, 0))])
	l.left -= len(b)
	return len(b), nil
}
