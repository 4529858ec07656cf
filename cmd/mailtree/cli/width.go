package cli

import (
	"regexp"

	"github.com/clipperhouse/displaywidth"
)

// style matches the characters that Screen adds to text for bold or color. Text written by others does not contain
// them: see Line.
var style = regexp.MustCompile("\x1b\\[[0-9]+m")

// columns returns the width of text in terminal columns.
func columns(text string) int { return displaywidth.String(style.ReplaceAllString(text, "")) }

// Fit cuts text to the given number of terminal columns. Text that has to be cut loses its style.
func Fit(text string, most int) string {
	if columns(text) <= most {
		return text
	}
	return displaywidth.TruncateString(style.ReplaceAllString(text, ""), most, "…")
}

// breakWide splits a word that does not fit into the first columns left on a line. It splits only before wide
// characters, as is usual for Chinese or Japanese text, and fills each line that follows up to width. It returns any
// other word whole.
func breakWide(word string, first, width int) (parts []string) {
	if columns(word) <= first || style.MatchString(word) {
		return []string{word}
	}
	part, at, room := "", 0, first
	for g := displaywidth.StringGraphemes(word); g.Next(); {
		if g.Width() > 1 && at+g.Width() > room && part != "" {
			parts = append(parts, part)
			part, at, room = "", 0, width
		}
		part += g.Value()
		at += g.Width()
	}
	return append(parts, part)
}
