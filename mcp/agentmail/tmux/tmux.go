// Package tmux queries the panes of a running tmux server and types into them. It runs the tmux program without a shell
// and does not start a tmux server. No other package of this module runs tmux.
package tmux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"mailtree/maildir/lazy"
)

const (
	patience  = 5 * time.Second // a tmux server responds within milliseconds unless it is suspended
	maxOutput = 1 << 20         // maximum bytes of one response; enough for about ten thousand panes
)

// Session identifies a session of a tmux server. Parse gets it from the variable TMUX.
type Session struct {
	socket string
	pid    string // pid of the server; a later server on the same socket assigns the same ids to other panes
	id     string
}

var (
	variable = lazy.Regexp(`^(/[^\x00-\x1f\x7f]+),([0-9]{1,19}),([0-9]{1,19})$`)
	paneID   = lazy.Regexp(`^%[0-9]{1,19}$`)
)

// Parse parses the value of $TMUX. It consists of the path of the server's socket, the server's pid and the session's
// number.
func Parse(value string) (Session, error) {
	m := variable().FindStringSubmatch(value)
	if m == nil || len(value) > 4096 || filepath.Clean(m[1]) != m[1] {
		return Session{}, errors.New("TMUX has an unexpected value (expected socket,pid,session)")
	}
	return Session{socket: m[1], pid: m[2], id: "$" + m[3]}, nil
}

// Pane is one pane in a tmux window.
type Pane struct {
	ID     string // the pane's id, as in $TMUX_PANE
	Window string // the window's name
	Active bool   // whether the pane receives its window's keystrokes
	// Quiet reports whether keystrokes reach only this pane's program: the program is running, the pane is not in a
	// mode, its input is enabled, and it is not synchronized with other panes.
	Quiet bool
	Dir   string // working directory of the pane's program; empty if tmux does not know it
}

// facts lists the fields that tmux prints for each pane, separated by spaces. In the window's name, tmux escapes spaces
// with a backslash. The folder comes last, because tmux does not escape the spaces in it.
const facts = `#{pid} #{pane_id} #{pane_active} ` +
	`#{pane_dead}#{pane_in_mode}#{pane_synchronized}#{pane_input_off} #{q:window_name} #{pane_current_path}`

// Panes lists the panes of the session that currently contains the given pane, or the panes of s if pane is "". If the
// pane, the session or the server does not exist, the error contains tmux's message. Panes also returns an error if
// tmux is not installed or does not respond.
func (s Session) Panes(ctx context.Context, pane string) ([]Pane, error) {
	target := s.id
	if pane != "" {
		if !paneID().MatchString(pane) {
			return nil, errors.New("TMUX_PANE has an unexpected value (expected %number)")
		}
		target = pane
	}
	out, err := s.run(ctx, "list-panes", "-s", "-t", target, "-F", facts)
	if err != nil {
		return nil, err
	}
	var panes []Pane
	for line := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 5)
		if len(f) < 5 || !paneID().MatchString(f[1]) {
			continue // the rest of a directory name that contains a line break
		}
		if f[0] != s.pid {
			return nil, errors.New("the tmux server of this session has exited")
		}
		p := Pane{ID: f[1], Active: f[2] == "1", Quiet: strings.Trim(f[3], "0") == ""}
		p.Window, p.Dir = cutName(f[4])
		panes = append(panes, p)
	}
	return panes, nil
}

// cutName splits off the escaped name at the beginning of s, and unescapes the name.
func cutName(s string) (name, rest string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == ' ':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), ""
}

func (s Session) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out, said limited
	cmd := exec.CommandContext(ctx, "tmux", append([]string{"-u", "-S", s.socket}, args...)...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &said, time.Second
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH")}
	err := cmd.Run()
	switch first, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n"); {
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("tmux is not on the server's PATH")
	case ctx.Err() != nil:
		return "", fmt.Errorf("tmux did not answer: %w", ctx.Err())
	case err != nil && first != "":
		return "", errors.New("tmux says: " + first)
	case err != nil:
		return "", fmt.Errorf("tmux: %w", err)
	}
	return out.String(), nil
}

// limited keeps only the first maxOutput bytes written to it.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), maxOutput-l.Len())])
	return len(p), nil
}
