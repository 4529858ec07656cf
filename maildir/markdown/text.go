package markdown

import (
	"html"
	"strings"
	"unicode"
)

// blank reports whether a rune is white space or a control character. Both are folded into spaces.
func blank(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// Line returns text as a single line of up to 300 runes, without control characters.
func Line(s string) string { return oneLine(s, textRunes) }

// oneLine folds white space and control characters into spaces, trims the text, and truncates it to limit runes.
func oneLine(s string, limit int) string {
	return clip(strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), blank), " "), limit)
}

// clip truncates s to at most limit runes. If it truncates s, the last rune is an ellipsis.
func clip(s string, limit int) string {
	runes, end := 0, 0
	for i := range s {
		if runes == limit-1 {
			end = i
		}
		if runes++; runes > limit {
			return strings.TrimRightFunc(s[:end], unicode.IsSpace) + "…"
		}
	}
	return s
}

// unescape replaces backslash escapes and character references with the characters that they represent.
func unescape(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		i := strings.IndexByte(s, '\\')
		if i < 0 || i+1 == len(s) {
			b.WriteString(html.UnescapeString(s))
			break
		}
		b.WriteString(html.UnescapeString(s[:i]))
		if !punctuation(s[i+1]) {
			b.WriteByte('\\')
			s = s[i+1:]
			continue
		}
		b.WriteByte(s[i+1])
		s = s[i+2:]
	}
	return b.String()
}

// punctuation reports whether c is an ASCII punctuation character, which a backslash can escape.
func punctuation(c byte) bool {
	return c > ' ' && c < 0x7f && !('0' <= c && c <= '9') && !('a' <= c|0x20 && c|0x20 <= 'z')
}
