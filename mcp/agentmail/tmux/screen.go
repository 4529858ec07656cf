package tmux

import (
	"strings"
	"unicode/utf8"

	"mailtree/maildir/lazy"
)

// Activity describes what the program in a pane is doing, judging by its screen.
type Activity string

// The possible activities. Notices are typed into a pane only while its activity is Waiting.
const (
	Waiting Activity = "is waiting for input" // the prompt is empty
	Typing  Activity = "has text in its prompt"
	Asking  Activity = "shows a dialog"
	Working Activity = "shows that it is working"
)

// Screen describes the screen of an agent's client.
type Screen struct {
	Activity Activity
	Typed    string // text in the prompt, up to the end of its first line
}

// A prompt begins with a marker and may be inside a box. If Gemini CLI runs without asking for approval, its marker is
// an asterisk. Claude Code writes a no-break space (U+00A0) after the marker. A dialog is a list in which the selected
// line begins with the marker and a number. While a client is working, it shows a hint near its prompt that says how to
// interrupt it.
var (
	prompt  = lazy.Regexp(`^[\s│┃|]*([›❯>*])(?:[\s\x{a0}]|$)`)
	choice  = lazy.Regexp(`^[\s│┃|]*[›❯>●]\s*[0-9]+[.)]\s`)
	working = lazy.Regexp(`(?i)\besc\S* (to )?(interrupt|cancel)\b`)
	shell   = lazy.Regexp(`[$#%>❯›]\s*$`)
)

// near is the number of lines above the prompt that ReadScreen searches for the hint that the client is working.
const near = 8

// ReadScreen interprets a screen that tmux captured with its attributes (capture-pane -e). cursor is the zero-based
// number of the line with the cursor. If the screen shows no known prompt, ReadScreen interprets that line.
func ReadScreen(captured string, cursor int) Screen {
	lines := parseLines(captured)
	at, asks := -1, false // at is the index of the last line with a marker; earlier output may contain markers too
	for i, l := range lines {
		if dialog := choice().MatchString(l.text()); dialog || prompt().MatchString(l.text()) {
			at, asks = i, dialog
		}
	}
	switch {
	case at < 0:
		return readCursorLine(lines, cursor)
	case asks:
		return Screen{Activity: Asking}
	}
	for _, l := range lines[max(0, at-near):] {
		if working().MatchString(l.text()) {
			return Screen{Activity: Working}
		}
	}
	line, marker := lines[at], prompt().FindStringSubmatchIndex(lines[at].text())
	m := len([]rune(line.text()[:marker[2]]))
	if line[m].reverse {
		return Screen{Activity: Asking}
	}
	typed := strings.Trim(line[m+1:].typed(), "│┃| \u00a0")
	if typed != "" {
		return Screen{Typing, typed}
	}
	return Screen{Activity: Waiting}
}

// readCursorLine interprets the screen of a program whose prompt is unknown. It treats an empty line, or a line that
// ends like a shell's prompt, as waiting for input.
func readCursorLine(lines []line, cursor int) Screen {
	if cursor < 0 || cursor >= len(lines) {
		return Screen{Activity: Waiting}
	}
	text := strings.TrimSpace(lines[cursor].text())
	if text == "" || shell().MatchString(text) {
		return Screen{Activity: Waiting}
	}
	return Screen{Typing, text}
}

// cell is one character on a screen.
type cell struct {
	char         rune
	dim, reverse bool
}

type line []cell

func (l line) text() string {
	var b strings.Builder
	for _, c := range l {
		b.WriteRune(c.char)
	}
	return b.String()
}

// typed returns the text in a prompt without the placeholder. Placeholder text is dim, except for the character under
// the cursor. If the cursor is on a leading space, the rest of the line is a placeholder.
func (l line) typed() string {
	var b strings.Builder
	for i, c := range l {
		switch {
		case c.reverse && c.char == ' ' && strings.TrimSpace(b.String()) == "":
			return ""
		case c.dim || c.reverse && i+1 < len(l) && l[i+1].dim:
		default:
			b.WriteRune(c.char)
		}
	}
	return b.String()
}

var escape = lazy.Regexp(`^\x1b(?:\[([0-9;:]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)`)

// parseLines parses lines with SGR attributes. The attributes carry over to the next line.
func parseLines(captured string) []line {
	var lines []line
	var now cell
	for text := range strings.SplitSeq(strings.TrimRight(captured, "\n"), "\n") {
		var l line
		for text != "" {
			if m := escape().FindStringSubmatch(text); m != nil {
				text = text[len(m[0]):]
				if m[2] == "m" {
					now.setAttributes(m[1])
				}
				continue
			}
			r, size := utf8.DecodeRuneInString(text)
			text = text[size:]
			if now.char = r; r >= ' ' {
				l = append(l, now)
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// setAttributes applies an SGR sequence (ECMA-48, 8.3.117). It skips color parameters.
func (c *cell) setAttributes(params string) {
	all := strings.Split(params, ";")
	for i := 0; i < len(all); i++ {
		switch all[i] {
		case "", "0":
			c.dim, c.reverse = false, false
		case "2":
			c.dim = true
		case "22":
			c.dim = false
		case "7":
			c.reverse = true
		case "27":
			c.reverse = false
		case "38", "48", "58":
			if i+1 < len(all) && all[i+1] == "2" {
				i += 4
			} else {
				i += 2
			}
		}
	}
}
