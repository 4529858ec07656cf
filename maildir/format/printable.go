package format

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mailtree/maildir/lazy"
)

// Printable returns untrusted text, such as a subject or a file name, in a form that can safely be printed on one
// line of a terminal. If s is valid UTF-8 without hidden characters (see Hidden), Printable returns s unchanged.
// Otherwise, it returns a Go string literal that escapes only hidden characters and invalid bytes. strconv.Unquote
// converts the literal back to s.
func Printable(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, Hidden) {
		return s
	}
	text, hidden := escape(s)
	if !hidden {
		return s
	}
	return `"` + text + `"`
}

// Literal returns s in quotation marks, with the same escapes as Printable.
func Literal(s string) string {
	text, _ := escape(s)
	return `"` + text + `"`
}

// Quote returns untrusted text, cut to at most 120 bytes, as a Literal for use in a sentence.
func Quote(s string) string { return Literal(Cut(s, 120)) }

// escape returns s with quotation marks, backslashes, hidden characters and invalid bytes escaped as in a Go string
// literal. It keeps all other characters, such as no-break spaces and zero width joiners. The result hidden reports
// whether s contains a hidden character or an invalid byte. Tag characters in a flag emoji do not count as hidden.
func escape(s string) (text string, hidden bool) {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		n = max(n, len(flag().FindString(s)))
		switch bad := Hidden(r) || r == utf8.RuneError && n == 1; {
		case bad || r == '"' || r == '\\':
			quoted := strconv.QuoteToASCII(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
			hidden = hidden || bad
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String(), hidden
}

// Hidden reports whether a character is Misleading, is a direction mark, or can be used to hide text: tags,
// interlinear annotations, and deprecated format controls.
func Hidden(r rune) bool {
	return Misleading(r) || r == '\u061c' || r == '\u200e' || r == '\u200f' || r >= '\u206a' && r <= '\u206f' ||
		r >= '\ufff9' && r <= '\ufffb' || r >= 0xe0000 && r <= 0xe007f
}

// flag matches a flag emoji that contains tag characters, such as the flag of Scotland, at the start of text.
var flag = lazy.Regexp(`^\x{1f3f4}[\x{e0030}-\x{e0039}\x{e0061}-\x{e007a}]{3,6}\x{e007f}`)

// Misleading reports whether a character breaks a line or changes the writing direction of the surrounding text.
func Misleading(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}
