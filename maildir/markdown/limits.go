package markdown

import (
	"strings"
	"unicode/utf8"
)

const (
	// Limit is the maximum number of bytes of a body that Render and RewriteImages read.
	Limit = 32 << 10

	// maxDepth is the maximum nesting depth of the blocks in a body, including the body itself. A list within a list
	// adds two levels.
	maxDepth = 100

	headingLimit = 16 << 10 // maximum number of bytes that FirstHeading reads

	// plainLimit is the maximum number of bytes that PlainText reads. 300 runes take at most 1,200 bytes, and the
	// remaining bytes are room for markup.
	plainLimit = 8 << 10

	textRunes    = 300 // maximum number of runes that PlainText returns
	headingRunes = 200 // maximum number of runes that FirstHeading returns; they take at most 800 bytes, and a subject may have 998 bytes
)

// clipBody returns up to limit bytes of body, and reports whether it cut anything off. If the second half of these
// bytes contains a line ending, clipBody cuts after the last one. Otherwise, it cuts at a rune boundary.
func clipBody(body string, limit int) (string, bool) {
	if len(body) <= limit {
		return body, false
	}
	if i := strings.LastIndexByte(body[limit/2:limit], '\n'); i >= 0 {
		return body[:limit/2+i+1], true
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(body[end]) {
		end--
	}
	return body[:end], true
}

// normalize converts every line ending to "\n" and makes the text valid UTF-8.
func normalize(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.Contains(s, "\r") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}
