package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"mailtree/maildir/storedir"
)

func logsCommand(p *program) *cobra.Command {
	var lines int
	var follow bool
	c := &cobra.Command{
		Use:   "logs",
		Short: "Show the log of a server in the background",
		Long: "Show the newest lines that a server in the background has logged. A server in a terminal logs there, a service to\n" +
			"its manager's log.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return p.logs(c.Context(), lines, follow) },
	}
	c.Flags().IntVarP(&lines, "lines", "n", 50, "how many lines")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is logged from now on")
	return c
}

// newestLog is how much of a log is looked at, in bytes.
const newestLog = 1 << 20

// logs prints the last lines of the log, and with follow what comes, until ctx ends.
func (p *program) logs(ctx context.Context, lines int, follow bool) error {
	if err := storedir.CheckLog(p.cfg.Store); errors.Is(err, fs.ErrNotExist) {
		return &exitError{exitNothing, fmt.Errorf("no server has run in the background yet: there is no %s", storedir.LogPath(p.cfg.Store))}
	} else if err != nil {
		return err
	}
	f, err := os.Open(storedir.LogPath(p.cfg.Store))
	if err != nil {
		return err
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = f.Seek(max(0, end-newestLog), io.SeekStart)
	}
	text, rerr := io.ReadAll(f)
	if err = errors.Join(err, rerr); err != nil {
		return err
	}
	if _, err := p.std.out.Write(lastLines(text, lines)); err != nil || !follow {
		return err
	}
	for {
		if _, err := io.Copy(p.std.out, f); err != nil {
			return err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
}

// lastLines is the end of a text that has at most n lines.
func lastLines(text []byte, n int) []byte {
	at := len(bytes.TrimSuffix(text, []byte("\n")))
	for range n {
		if at = bytes.LastIndexByte(text[:max(at, 0)], '\n'); at < 0 {
			return text
		}
	}
	return text[at+1:]
}
