package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mailtree/maildir/format"
)

// Screen is where a command prints. On a terminal, tables fit its width, what is new is bold, and
// Paged uses a pager; elsewhere the text is plain and whole.
type Screen struct {
	Out   io.Writer
	Width int // columns of the terminal; 0: it is none
	Now   func() time.Time

	colour bool
	env    func(name string) string
	tty    *os.File
}

// NewScreen looks at what out is. env returns variables of the environment: NO_COLOR and TERM=dumb
// switch bold off, PAGER chooses the pager.
func NewScreen(out io.Writer, env func(name string) string) *Screen {
	s := &Screen{Out: out, Now: time.Now, env: env}
	f, ok := out.(*os.File)
	if !ok {
		return s
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return s
	}
	s.tty, s.Width = f, int(cmp.Or(size.Col, 80)) // a terminal that does not know is as the first ones were
	s.colour = env("NO_COLOR") == "" && env("TERM") != "dumb"
	return s
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f any) bool {
	file, ok := f.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// Bold is the text in bold, where the screen shows that.
func (s *Screen) Bold(text string) string { return s.styled("1", text) }

// Faint is the text in the lighter shade of a terminal, where the screen shows that.
func (s *Screen) Faint(text string) string { return s.styled("2", text) }

func (s *Screen) styled(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Printf prints. What others wrote goes through Line or Text first.
func (s *Screen) Printf(format string, a ...any) { fmt.Fprintf(s.Out, format, a...) }

// JSON prints an answer as it came: on a line of its own, and indented on a terminal.
func (s *Screen) JSON(answer json.RawMessage) error {
	if s.Width > 0 {
		var b bytes.Buffer
		if err := json.Indent(&b, answer, "", "  "); err != nil {
			return err
		}
		answer = b.Bytes()
	}
	_, err := fmt.Fprintf(s.Out, "%s\n", answer)
	return err
}

// Paged calls print with a screen whose text goes through the pager as it comes, where this screen is
// a terminal: PAGER, else less, which ends at once when all fits. PAGER=cat is none. A person who
// leaves the pager has seen enough: no error of print's is one then.
func (s *Screen) Paged(ctx context.Context, print func(*Screen) error) error {
	line := cmp.Or(s.env("PAGER"), "less")
	if s.tty == nil || line == "cat" {
		return print(s)
	}
	pager := exec.CommandContext(ctx, "sh", "-c", line)
	pager.Stdout, pager.Stderr = s.tty, os.Stderr
	pager.Env = os.Environ()
	if s.env("LESS") == "" {
		pager.Env = append(pager.Env, "LESS=FRX")
	}
	text, err := pager.StdinPipe()
	if err != nil {
		return err
	}
	if err := pager.Start(); err != nil {
		return print(s)
	}
	inner, written := *s, &firstError{to: text}
	inner.Out = written
	err = print(&inner)
	text.Close()
	_ = pager.Wait() // how it ends says nothing of the text
	switch {
	case pager.ProcessState.ExitCode() == noSuchProgram && ctx.Err() == nil:
		return print(s) // the text is what was asked for
	case written.err != nil: // it was left
		return nil
	}
	return err
}

// noSuchProgram is how a shell ends that does not find the program.
const noSuchProgram = 127

// firstError is a writer that remembers its first error, and fails with it from then on.
type firstError struct {
	to  io.Writer
	err error
}

func (w *firstError) Write(b []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.to.Write(b)
	w.err = err
	return n, err
}

// Line is a text of others for a line of a terminal.
func Line(text string) string { return format.Printable(text) }

// Text is a text of others of several lines, with what a terminal would obey made visible.
func Text(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && format.Misleading(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}
