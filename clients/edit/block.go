package edit

import "strings"

// These markers surround our lines in a Markdown file. They are invisible when the file is rendered.
const (
	blockBegin = "<!-- mailtree -->"
	blockEnd   = "<!-- /mailtree -->"
)

// PutBlock returns data with the lines between our markers. It replaces an existing block, or appends a new one.
func PutBlock(data []byte, lines []string) []byte {
	nl, text := newline(data), string(data)
	block := blockBegin + nl + strings.Join(lines, nl) + nl + blockEnd + nl
	if from, to, ok := findBlock(text); ok {
		return []byte(text[:from] + block + text[to:])
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += nl
	}
	if text != "" {
		text += nl
	}
	return []byte(text + block)
}

// CutBlock returns data without our lines and the blank line before them.
func CutBlock(data []byte) []byte {
	text := string(data)
	from, to, ok := findBlock(text)
	if !ok {
		return data
	}
	before := text[:from]
	if rest, ok := strings.CutSuffix(before, newline(data)); ok && (rest == "" || strings.HasSuffix(rest, "\n")) {
		before = rest
	}
	return []byte(before + text[to:])
}

// findBlock returns the offset at which the block begins, and the offset after the block's last line ending. It
// recognizes markers only at the beginning of a line.
func findBlock(text string) (from, to int, ok bool) {
	from = strings.Index("\n"+text, "\n"+blockBegin)
	if from < 0 {
		return 0, 0, false
	}
	end := strings.Index(text[from:], "\n"+blockEnd)
	if end < 0 {
		return 0, 0, false
	}
	to = from + end + len("\n"+blockEnd)
	if i := strings.IndexByte(text[to:], '\n'); i >= 0 {
		return from, to + i + 1, true
	}
	return from, len(text), true
}
