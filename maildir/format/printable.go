package format

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns an untrusted text, such as a file name, for a line on a terminal. If every character is
// printable it returns the text as it is. Otherwise it returns a Go string literal, which escapes line
// breaks, control sequences, direction marks and invalid UTF-8.
func Printable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return !strconv.IsPrint(c) }) {
		return s
	}
	return strconv.Quote(s)
}

// Misleading reports whether a character breaks a line or changes the writing direction.
func Misleading(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}
