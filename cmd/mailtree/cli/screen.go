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
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"mailtree/maildir/format"
)

// Screen is where commands print. On a terminal, tables fit the width, new items are bold, and Paged uses a pager.
// Otherwise, the text is plain and complete.
type Screen struct {
	Out   io.Writer
	Width int // the terminal's width in columns; 0 if Out is not a terminal
	Now   func() time.Time

	Height int // the terminal's height in lines; 0 if Out is not a terminal

	colour bool
	env    func(name string) string
	tty    *os.File
}

// NewScreen returns a Screen for out. It looks up environment variables with env. NO_COLOR and TERM=dumb turn bold text
// off, and PAGER selects the pager.
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
	s.tty, s.Width, s.Height = f, int(cmp.Or(size.Col, 80)), int(cmp.Or(size.Row, 24)) // defaults for an unknown size
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

// Bold returns the text in bold if the screen supports bold text.
func (s *Screen) Bold(text string) string { return s.styled("1", text) }

// Faint returns the text in a lighter shade if the screen supports styles.
func (s *Screen) Faint(text string) string { return s.styled("2", text) }

// Warn returns the text in a color that draws attention if the screen supports colors.
func (s *Screen) Warn(text string) string { return s.styled("31", text) }

// styled returns the text in a style. If part of the text already has another style, the new style resumes after that
// part.
func (s *Screen) styled(code, text string) string {
	if !s.colour || text == "" {
		return text
	}
	const end = "\x1b[0m"
	begin := "\x1b[" + code + "m"
	return begin + strings.ReplaceAll(text, end, end+begin) + end
}

// Printf formats and prints text. Pass text written by others through Line or Text first.
func (s *Screen) Printf(format string, a ...any) { fmt.Fprintf(s.Out, format, a...) }

// Say prints a line in a style, or without a style if style is nil. On a terminal, it cuts the line to the terminal's
// width.
func (s *Screen) Say(style func(text string) string, format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	if s.Width > 0 {
		text = Fit(text, s.Width)
	}
	if style != nil {
		text = style(text)
	}
	s.Printf("%s\n", text)
}

// JSON prints answer on one line. On a terminal, it indents answer, and escapes characters that are valid in JSON
// strings but could control the terminal.
func (s *Screen) JSON(answer json.RawMessage) error {
	if s.Width > 0 {
		var b bytes.Buffer
		if err := json.Indent(&b, answer, "", "  "); err != nil {
			return err
		}
		answer = escapeControls(b.String())
	}
	_, err := fmt.Fprintf(s.Out, "%s\n", answer)
	return err
}

// escapeControls escapes misleading characters in JSON, from DEL upward. The control characters below DEL are already
// escaped in JSON.
func escapeControls(text string) []byte {
	var b []byte
	for _, r := range text {
		if r >= 0x7f && format.Misleading(r) {
			b = fmt.Appendf(b, "\\u%04x", r)
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

// Paged calls print with a screen that writes to a pager if this screen is a terminal. The pager is PAGER or, by
// default, less, which exits immediately if everything fits on the screen. PAGER=cat turns the pager off. If the user
// quits the pager early, Paged returns no error.
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
	_ = pager.Wait() // the pager's exit status does not matter here
	switch {
	case pager.ProcessState.ExitCode() == noSuchProgram && ctx.Err() == nil:
		return print(s) // the shell did not find the pager, so print the text without one
	case written.err != nil: // the user quit the pager
		return nil
	}
	return err
}

// noSuchProgram is the exit status of a shell that cannot find the program.
const noSuchProgram = 127

// firstError is a writer that stores its first error and returns that error for every later write.
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

// Line makes text written by others safe to print as a single line on a terminal.
func Line(text string) string { return format.Printable(text) }

// Text makes text written by others safe for a terminal. It replaces the characters that would control the terminal.
// The text may have several lines.
func Text(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && format.Misleading(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}
