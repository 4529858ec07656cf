package notify

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Variable is the environment variable from which the command can read the line.
const Variable = "MAILTREE_NOTICE"

// limit is the time limit for the command. A command that takes longer is killed together with its child processes.
const limit = 10 * time.Second

// run runs the command without a shell. The line is the command's standard input and the value of Variable.
func run(ctx context.Context, command []string, line string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("timed out after %v", limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), Variable+"="+line)
	cmd.Stdin = strings.NewReader(line + "\n")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("cannot run %s: %w", command[0], err)
	}
	return nil
}
