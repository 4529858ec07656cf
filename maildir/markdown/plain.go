package markdown

import (
	"strings"
)

// FirstHeading returns the text of the first heading (ATX or setext, outside
// code and quotes, not behind a list marker) of the first Limit bytes; if there
// is none, the first line that has a text; if there is none, "". One line of at
// most 200 runes, markup taken off by line scanning, without goldmark: it is
// called in ingest.
//
// Spec: 2.1, subject.
func FirstHeading(body string) string {
	body, _ = clipBody(body, Limit)
	line := ""
	for c := range chunks(body) {
		if c.kind == heading {
			return orRaw(c.text, headingRunes)
		}
		if line == "" {
			first, _, _ := strings.Cut(c.text, "\n")
			line = first
			if c.kind == paragraph {
				line = unmark(first)
			}
		}
	}
	return orRaw(line, headingRunes)
}

// orRaw strips a line; what is nothing but markup stays as it is.
func orRaw(line string, limit int) string {
	if s := oneLine(strip(line), limit); s != "" {
		return s
	}
	return oneLine(line, limit)
}

// PlainText returns the text of the first 8 KiB of the body without markup, as
// one line of at most 300 runes: an excerpt. Code stays, as text. What looks like
// markup but is not may stay or go; a search should not use this.
func PlainText(body string) string {
	body, cut := clipBody(body, plainLimit)
	var b strings.Builder
	for c := range chunks(body) {
		s := c.text
		switch c.kind {
		case paragraph:
			s = strip(unmarkLines(s))
		case heading:
			s = strip(s)
		}
		b.WriteString(oneLine(s, textRunes+1))
		b.WriteByte('\n')
		if b.Len() > 8*textRunes { // that is 300 runes and more, of whatever size
			break
		}
	}
	s := oneLine(b.String(), textRunes)
	if cut && s != "" && !strings.HasSuffix(s, "…") {
		s = clip(s+" …", textRunes)
	}
	return s
}

var (
	tableRule  = lazily(`^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-*:?[ \t]*)*$`)
	definition = lazily(`^ {0,3}\[[^\[\]]+\]:[ \t]`)
)

// unmark takes quote marks, list and heading markers and task boxes off a line's
// beginning. By hand: a body may have a hundred thousand empty list items.
func unmark(line string) string {
	for {
		line = strings.TrimLeft(line, " \t\r")
		n := markLength(line)
		if n == 0 {
			return line
		}
		line = line[n:]
	}
}

// markLength is the length of the block mark that the line begins with, or 0.
func markLength(line string) int {
	switch {
	case line == "":
		return 0
	case line[0] == '>':
		return 1
	case strings.HasPrefix(line, "[ ] "), strings.HasPrefix(line, "[x] "), strings.HasPrefix(line, "[X] "):
		return len("[x] ")
	}
	return max(listMarker(line), atxLevel(line))
}

// unmarkLines takes the block markup off the lines of a paragraph chunk: link
// definitions and table rules go, cell borders become blanks.
func unmarkLines(text string) string {
	var b strings.Builder
	table := false
	first := true
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if definition().MatchString(line) {
			continue
		}
		if strings.Contains(line, "|") && tableRule().MatchString(line) {
			table = true
			continue
		}
		if first || strings.HasPrefix(strings.TrimLeft(line, " "), ">") {
			line = unmark(line)
		}
		first = false
		b.WriteString(line)
		b.WriteByte('\n')
	}
	if table {
		return strings.NewReplacer(`\|`, "|", "|", " ").Replace(b.String())
	}
	return b.String()
}
