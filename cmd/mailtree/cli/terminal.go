package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// These control sequences switch to and from the terminal's alternate screen. They also hide the cursor on that screen,
// and turn on bracketed paste, so that the terminal marks pasted text.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?2004h"
	leaveScreen = "\x1b[2J\x1b[?2004l\x1b[?25h\x1b[?1049l"
)

// Terminal is the terminal in which a full-screen program runs. Only ReadKeys may be called concurrently with other
// methods.
type Terminal struct {
	In, Out *os.File

	before  *term.State
	shown   []string // the lines on the screen
	pasting bool
	partial string // the beginning of a sequence or character whose rest has not been read yet
}

// TakeOver switches to the terminal's alternate screen and puts the terminal in raw mode. In raw mode, the terminal
// sends each key immediately.
func (t *Terminal) TakeOver() (err error) {
	if t.before, err = term.MakeRaw(int(t.In.Fd())); err != nil {
		return fmt.Errorf("cannot use the terminal: %w", err)
	}
	t.shown = nil
	_, err = t.Out.WriteString(enterScreen)
	return err
}

// Restore undoes TakeOver.
func (t *Terminal) Restore() {
	_, _ = t.Out.WriteString(leaveScreen) // if the terminal is gone, there is nothing to restore
	_ = term.Restore(int(t.In.Fd()), t.before)
}

// Paint shows the lines, which must fit the terminal's width. It writes only lines that have changed unless resized is
// set.
func (t *Terminal) Paint(lines []string, resized bool) {
	var b strings.Builder
	if resized || t.shown == nil {
		t.shown = nil
		b.WriteString("\x1b[2J")
	}
	for i, line := range lines {
		if i >= len(t.shown) || t.shown[i] != line {
			fmt.Fprintf(&b, "\x1b[%d;1H\x1b[2K%s", i+1, line)
		}
	}
	t.shown = lines
	_, _ = t.Out.WriteString(b.String())
}

// ReadKeys waits until the user presses keys. It returns each key as a character, or as a name such as "up". It
// discards text that the user pastes. It returns an error if the terminal has been closed.
func (t *Terminal) ReadKeys() ([]string, error) {
	b := make([]byte, 1024)
	n, err := t.In.Read(b)
	return t.keys(string(b[:n])), err
}

// keyNames maps the control sequences of special keys to the keys' names.
var keyNames = [...][2]string{
	{"\x1b[200~", "paste"}, {"\x1b[201~", "pasted"},
	{"\x1b[A", "up"}, {"\x1b[B", "down"}, {"\x1bOA", "up"}, {"\x1bOB", "down"}, {"\x1b[5~", "pgup"}, {"\x1b[6~", "pgdown"},
	{"\x1b", "esc"}, {"\r", "enter"}, {"\n", "enter"}, {"\x7f", "backspace"}, {"\b", "backspace"}, {"\x03", "ctrl+c"},
}

// incomplete reports whether text is only the beginning of a sequence or character. Outside pasted text, a single ESC
// is the Esc key.
func (t *Terminal) incomplete(text string) bool {
	if text == "\x1b" {
		return t.pasting
	}
	begins := func(k [2]string) bool { return len(text) < len(k[0]) && strings.HasPrefix(k[0], text) }
	return slices.ContainsFunc(keyNames[:], begins) || !utf8.FullRuneInString(text)
}

// keys splits the terminal's input into keys.
func (t *Terminal) keys(sent string) (keys []string) {
	for sent = t.partial + sent; sent != ""; {
		if t.partial = ""; t.incomplete(sent) {
			t.partial = sent
			break
		}
		_, n := utf8.DecodeRuneInString(sent)
		key := sent[:n]
		for _, k := range keyNames {
			if strings.HasPrefix(sent, k[0]) {
				n, key = len(k[0]), k[1]
				break
			}
		}
		sent = sent[n:]
		switch {
		case key == "paste" || key == "pasted":
			t.pasting = key == "paste"
		case !t.pasting && Line(key) == key:
			keys = append(keys, key)
		}
	}
	return keys
}
