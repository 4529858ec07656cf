package cli

import (
	"fmt"
	"strings"

	"mailtree/maildir/lazy"
)

// word matches a word. Fold does not break words. A command in backquotes, including its spaces, is part of one word.
var word = lazy.Regexp("(?:`[^`]*`|[^ \\t`]|`)+")

// quoted matches text in quotation marks.
var quoted = lazy.Regexp(`"[^"]*"|'[^']*'`)

// Fold breaks lines between words so that they fit the given width. It breaks neither commands in backquotes nor words
// that are too long for a line, such as paths. Continuation lines are indented to the start of the line's last column
// if that start is in the first two thirds of the width. Columns are separated by two spaces.
//
// Fold also does not break indented lines without columns if they follow a line that ends with a colon. Such lines
// contain commands for users to copy and paste.
func Fold(text string, width int) string {
	var b strings.Builder
	commands := false // whether the indented lines that follow are commands
	for line := range strings.Lines(text) {
		bare, end := strings.CutSuffix(line, "\n")
		commands = commands && strings.HasPrefix(bare, " ")
		if !commands || strings.Contains(quoted().ReplaceAllString(strings.TrimLeft(bare, " "), ""), "  ") {
			bare = foldLine(bare, width)
		}
		b.WriteString(bare)
		if end {
			b.WriteByte('\n')
		}
		commands = commands || strings.HasSuffix(bare, ":")
	}
	return b.String()
}

func foldLine(line string, width int) string {
	if columns(line) <= width {
		return line
	}
	indent := 0
	for indent < len(line) && line[indent] == ' ' {
		indent++
	}
	if at := strings.LastIndex(line[:min(len(line), 2*width/3)], "  "); at >= indent {
		indent = at + 2
	}
	var b strings.Builder
	b.WriteString(line[:indent])
	left := columns(line[:indent])
	begin, at := left, left
	for _, word := range word().FindAllString(line[indent:], -1) {
		blank := min(1, at-begin)
		if blank > 0 && at+blank+2 > width { // not even a wide character fits
			b.WriteString("\n" + strings.Repeat(" ", left))
			at, blank = begin, 0
		}
		parts := breakWide(word, width-at-blank, width-begin)
		if len(parts) == 1 && blank > 0 && at+blank+columns(word) > width { // the word goes on the next line
			b.WriteString("\n" + strings.Repeat(" ", left))
			at, blank = begin, 0
		}
		b.WriteString(strings.Repeat(" ", blank) + strings.Join(parts, "\n"+strings.Repeat(" ", left)))
		if len(parts) > 1 {
			at, blank = begin, 0
		}
		at += blank + columns(parts[len(parts)-1])
	}
	return b.String()
}

// Facts prints rows, each of which has a label and a value. On a terminal, a value that does not fit continues on the
// next line, aligned with the start of the value. Labels and values must be single lines.
func (s *Screen) Facts(rows []Row) {
	width := 0
	for _, r := range rows {
		width = max(width, columns(r.Cells[0]))
	}
	for _, r := range rows {
		s.Tell("%s\n", r.Cells[0]+strings.Repeat(" ", width-columns(r.Cells[0])+2)+r.Cells[1])
	}
}

// Tell is like Printf but, on a terminal, breaks long lines between words. Commands use it to print errors, hints and
// findings.
func (s *Screen) Tell(format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	if s.Width > 0 {
		text = Fold(text, s.Width)
	}
	s.Printf("%s", text)
}
