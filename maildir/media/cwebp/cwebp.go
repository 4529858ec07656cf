// Package cwebp converts photographs to WebP with the cwebp program, if it is installed. The conversion is lossy,
// because a lossless version of a JPEG image is never smaller than the original.
package cwebp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Limit is how long cwebp may run. In a measurement, 8 million pixels of noise took 1.7 s.
const Limit = 15 * time.Second

// limited runs a program with at most 256 MiB of memory, if the system enforces the limit. In a measurement, 8 million
// pixels took 169 MB.
const limited = `ulimit -v 262144 2>/dev/null; exec "$0" "$@"`

// quality is the quality of the result, on a scale from 0 to 100. At this quality, the loss is not visible at a glance.
const quality = "90"

// Program is an installed cwebp. It is safe for concurrent use.
type Program struct {
	path  string
	limit time.Duration
}

// New returns the Program at an absolute path. It does not run the program. If limit is 0, Limit applies.
func New(path string, limit time.Duration) *Program {
	if limit == 0 {
		limit = Limit
	}
	return &Program{path: path, limit: limit}
}

// Code converts a JPEG image to WebP, with some loss of detail, and keeps the image's color profile. The error says why
// the image could not be converted: the program failed, took too long, or produced more bytes than the image has. The
// caller must check the result, because any program may be named cwebp.
func (p *Program) Code(ctx context.Context, jpeg []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit, fmt.Errorf("timed out after %v", p.limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", limited, p.path, "-quiet", "-q", quality, "-metadata", "icc", "-o", "-", "--", "-")
	var said beginning
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.Stdin, cmd.Stderr = bytes.NewReader(jpeg), &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	data, _ := io.ReadAll(io.LimitReader(out, int64(len(jpeg))+1))
	larger := len(data) > len(jpeg)
	if larger {
		cancel()
	}
	err = cmd.Wait()
	switch {
	case larger:
		return nil, errors.New("the result would be larger")
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		first, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n")
		return nil, fmt.Errorf("%w %s", err, first)
	}
	return data, nil
}

// beginning keeps only the first maxBeginning bytes written to it, because a program named cwebp might print
// endlessly.
type beginning []byte

const maxBeginning = 4 << 10

func (b *beginning) Write(text []byte) (int, error) {
	*b = append(*b, text[:min(len(text), maxBeginning-len(*b))]...)
	return len(text), nil
}
