package markdown

import (
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// Limit is how many bytes of a body Parse reads. The worst
	// body of this size that we found takes Parse about half of Deadline.
	Limit = 256 << 10

	// Deadline ends Parse on a machine that is far slower than the bounds assume,
	// unless the body is Short. The step that runs when it passes is finished first: a
	// few ms.
	Deadline = 180 * time.Millisecond

	// Short is how many bytes FirstHeading reads, and how long a body may be to have no Deadline.
	// The worst of this size cost about 10 ms, so time passes only where the machine is busy with
	// something else, and the answer about a message must not depend on that.
	Short = 16 << 10

	shortDeadline = time.Minute

	// plainLimit is how many bytes PlainText reads: 300 runes are 1,200 bytes at
	// most, and the rest is room for markup.
	plainLimit = 8 << 10

	textRunes    = 300 // of every string in an Outline and of PlainText
	headingRunes = 200 // of FirstHeading: at most 800 bytes, a subject may have 998
)

// clipBody returns at most limit bytes of body, cut before a rune and, if there
// is one in the second half, after a line; and whether it cut.
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

// normalize makes every line end in "\n" and the text valid UTF-8.
func normalize(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.Contains(s, "\r") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}
