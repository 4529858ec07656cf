package cli

import (
	"strings"

	"github.com/clipperhouse/displaywidth"

	"mailtree/maildir/lazy"
)

// style matches the control sequences that Screen adds to text for bold or color. Text written by others does not
// contain these sequences after it has passed through Line.
var style = lazy.Regexp("\x1b\\[[0-9;]+m")

// columns returns the width of text in terminal columns.
func columns(text string) int {
	if strings.Contains(text, "\x1b") {
		text = style().ReplaceAllString(text, "")
	}
	return displaywidth.String(text)
}

// Fit cuts text to the given number of terminal columns. If the text has to be cut, it loses its style.
func Fit(text string, most int) string {
	if columns(text) <= most {
		return text
	}
	return displaywidth.TruncateString(style().ReplaceAllString(text, ""), most, "…")
}

// Cell cuts or pads text to the given number of terminal columns.
func Cell(text string, width int) string {
	if width <= 0 {
		return ""
	}
	text = Fit(text, width)
	return text + strings.Repeat(" ", width-columns(text))
}

// Ends returns a line of the given number of terminal columns that begins with left and ends with right. It cuts left
// if necessary.
func Ends(left, right string, width int) string {
	if right == "" {
		return Cell(left, width)
	}
	return Cell(Cell(left, width-columns(right)-1)+" "+right, width)
}

// Wrap breaks a line into parts that fit the given number of terminal columns. It may break the line between any two
// characters. If the line has to be broken, it loses its style.
func Wrap(line string, width int) (parts []string) {
	if columns(line) <= width {
		return []string{line}
	}
	part, at := "", 0
	for g := displaywidth.StringGraphemes(style().ReplaceAllString(line, "")); g.Next(); at += g.Width() {
		if at+g.Width() > width && part != "" {
			parts = append(parts, part)
			part, at = "", 0
		}
		part += g.Value()
	}
	return append(parts, part)
}

// breakWide splits a word that is wider than first, the number of columns left on the word's line. It splits the word
// only before wide characters, as is usual for Chinese or Japanese text. The following lines are up to width columns
// wide. breakWide does not split any other word.
func breakWide(word string, first, width int) (parts []string) {
	if columns(word) <= first || style().MatchString(word) {
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
