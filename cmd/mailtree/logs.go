package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mailtree/maildir/storedir"
)

func logsCommand(p *program) *cobra.Command {
	var lines uint
	var follow, asJSON bool
	c := &cobra.Command{
		Use:   "logs",
		Short: "Show the log of a server in the background",
		Long: "Show the newest lines that a server in the background has logged. A server in a terminal logs there, a service to\n" +
			"its manager's log.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			to := p.std.out
			if asJSON {
				to = &jsonLog{to: to}
			}
			return p.logs(c.Context(), to, lines, follow)
		},
	}
	c.Flags().UintVarP(&lines, "lines", "n", 50, "how many lines")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is logged from now on")
	c.Flags().BoolVar(&asJSON, "json", false, "print each line as a JSON object")
	return c
}

// newestLog is how much of a log is looked at, in bytes.
const newestLog = 1 << 20

// logs writes the last lines of the log, and with follow what comes, until ctx ends.
func (p *program) logs(ctx context.Context, to io.Writer, lines uint, follow bool) error {
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
	if _, err := to.Write(lastLines(text, lines)); err != nil || !follow {
		return err
	}
	for {
		if _, err := io.Copy(to, f); err != nil {
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
func lastLines(text []byte, n uint) []byte {
	at := len(bytes.TrimSuffix(text, []byte("\n")))
	for range n {
		if at = bytes.LastIndexByte(text[:max(at, 0)], '\n'); at < 0 {
			return text
		}
	}
	return text[at+1:]
}

// jsonLog writes the lines of a log as JSON objects. What LOG_FORMAT=json has made is one already;
// of a line of text, each field is a string, and a line without fields is a msg.
type jsonLog struct {
	to    io.Writer
	begun []byte // the line that has not ended yet
}

// Write writes the lines that end in b.
func (l *jsonLog) Write(b []byte) (int, error) {
	l.begun = append(l.begun, b...)
	for {
		line, rest, ok := bytes.Cut(l.begun, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		if !bytes.HasPrefix(line, []byte("{")) || !json.Valid(line) {
			var err error
			if line, err = json.Marshal(logFields(string(line))); err != nil {
				return 0, err
			}
		}
		if _, err := l.to.Write(append(line, '\n')); err != nil {
			return 0, err
		}
		l.begun = rest
	}
}

// logFields are the fields of a line that slog's text handler has written.
func logFields(line string) map[string]string {
	fields := map[string]string{}
	for rest := line; ; {
		key, value, ok := strings.Cut(rest, "=")
		if !ok || strings.ContainsAny(key, ` "`) {
			return map[string]string{"msg": line}
		}
		if quoted, err := strconv.QuotedPrefix(value); err == nil {
			fields[key], _ = strconv.Unquote(quoted) // it is quoted well
			rest = strings.TrimPrefix(value[len(quoted):], " ")
		} else {
			fields[key], rest, _ = strings.Cut(value, " ")
		}
		if rest == "" {
			return fields
		}
	}
}
