package format

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns a text that somebody else wrote, such as the name of a file, for a line on a
// terminal: as it is where each of its characters is one to see, else quoted as in Go, with escapes
// in place of line breaks, control sequences, marks that turn the direction, and invalid UTF-8.
func Printable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return !strconv.IsPrint(c) }) {
		return s
	}
	return strconv.Quote(s)
}

// Misleading reports whether a character breaks a line or turns its direction.
func Misleading(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}
