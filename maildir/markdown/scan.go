package markdown

import (
	"iter"
	"strings"
)

// kind is what a chunk of lines is.
type kind int

const (
	paragraph kind = iota // a paragraph, a list item, quoted lines, a table
	heading
	code
)

// chunk is a run of lines, cut out of the body: cheap blocks, without a tree.
type chunk struct {
	kind kind
	text string // a heading's text without its markers; else the lines as written
}

// scanner cuts a body into chunks in one pass.
type scanner struct {
	body       string
	fence      string // the characters that opened the fence we are in, or ""
	inItem     bool   // the fence began in a list item: its end may be indented
	start, end int    // the open paragraph in body; empty if start == end
}

// chunks yields the chunks of the body that hold a text. Fences, thematic breaks
// and empty lines are none.
func chunks(body string) iter.Seq[chunk] {
	return func(yield func(chunk) bool) {
		s := scanner{body: body}
		for at := 0; at < len(body); {
			end := len(body)
			if i := strings.IndexByte(body[at:], '\n'); i >= 0 {
				end = at + i + 1
			}
			if !s.line(at, end, yield) {
				return
			}
			at = end
		}
		s.flush(paragraph, yield)
	}
}

// line takes the line body[at:end]. It returns false once yield does.
func (s *scanner) line(at, end int, yield func(chunk) bool) bool {
	line := strings.TrimRight(s.body[at:end], " \t\r\n")
	text := strings.TrimLeft(line, " \t")
	indented := len(line)-len(text) >= 4 || strings.HasPrefix(line, "\t")
	switch {
	case s.fence != "":
		if (!indented || s.inItem) && strings.HasPrefix(text, s.fence) && strings.Trim(text, s.fence[:1]) == "" {
			s.fence = ""
			return true
		}
		return text == "" || yield(chunk{code, text})
	case text == "":
		return s.flush(paragraph, yield)
	case indented && s.start == s.end:
		return yield(chunk{code, text})
	case indented && s.plain():
		s.end = end
		return true
	case fenceOf(afterMarker(text)) != "":
		s.fence, s.inItem = fenceOf(afterMarker(text)), indented || listMarker(text) > 0
		return s.flush(paragraph, yield)
	case (strings.Trim(text, "=") == "" || strings.Trim(text, "-") == "") && s.plain():
		return s.flush(heading, yield)
	case thematic(text):
		return s.flush(paragraph, yield)
	case atxLevel(text) > 0:
		return s.flush(paragraph, yield) && s.atx(text, yield)
	case listMarker(text) > 0 || text[0] == '>' && s.plain():
		if !s.flush(paragraph, yield) {
			return false
		}
	}
	if s.start == s.end {
		s.start = at
	}
	s.end = end
	return true
}

// plain says whether a paragraph is open that "---" makes a heading.
func (s *scanner) plain() bool {
	first := strings.TrimLeft(s.body[s.start:s.end], " ")
	return first != "" && first[0] != '>' && listMarker(first) == 0
}

// flush yields the open paragraph, if any, as k.
func (s *scanner) flush(k kind, yield func(chunk) bool) bool {
	text := s.body[s.start:s.end]
	s.start, s.end = 0, 0
	if text == "" {
		return true
	}
	return yield(chunk{k, text})
}

// atx yields the text of "## text ##".
func (s *scanner) atx(line string, yield func(chunk) bool) bool {
	text := strings.TrimSpace(line[atxLevel(line):])
	if body := strings.TrimRight(text, "#"); body == "" || strings.HasSuffix(body, " ") {
		text = strings.TrimSpace(body)
	}
	return text == "" || yield(chunk{heading, text})
}

// atxLevel is the number of "#" that make the line a heading, or 0.
func atxLevel(line string) int {
	n := len(line) - len(strings.TrimLeft(line, "#"))
	if n > 6 || n < len(line) && line[n] != ' ' && line[n] != '\t' {
		return 0
	}
	return n
}

// fenceOf returns the characters that open a code fence, or "".
func fenceOf(line string) string {
	if line == "" {
		return ""
	}
	c := line[0]
	if c != '`' && c != '~' {
		return ""
	}
	rest := strings.TrimLeft(line, line[:1])
	if len(line)-len(rest) < 3 || c == '`' && strings.Contains(rest, "`") {
		return ""
	}
	return line[:len(line)-len(rest)]
}

// afterMarker is the line without the list marker that it begins with.
func afterMarker(line string) string {
	return strings.TrimLeft(line[listMarker(line):], " \t")
}

// thematic says whether the line is a thematic break.
func thematic(line string) bool {
	c := line[0]
	if c != '-' && c != '*' && c != '_' {
		return false
	}
	return strings.Count(line, line[:1]) >= 3 && strings.Trim(line, line[:1]+" \t") == ""
}

// listMarker is the length of the "- ", "* ", "+ ", "1. " or "1) " that the line
// begins with, or 0.
func listMarker(line string) int {
	n := 1
	if strings.IndexByte("-*+", line[0]) < 0 {
		digits := len(line) - len(strings.TrimLeft(line, "0123456789"))
		if digits == 0 || digits > 9 || digits == len(line) || line[digits] != '.' && line[digits] != ')' {
			return 0
		}
		n = digits + 1
	}
	if n < len(line) && line[n] != ' ' && line[n] != '\t' && line[n] != '\n' {
		return 0
	}
	return n
}
