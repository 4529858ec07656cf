package cli

import (
	"strings"

	"mailtree/maildir/markdown"
)

// widestText is how many columns a line of text has at most: longer ones are hard to read.
const widestText = 96

// Markdown returns a body by others: on a terminal rendered within its width, each line behind indent
// blanks, elsewhere as it is. It ends with a line end, unless it is empty.
func (s *Screen) Markdown(body string, indent int) string {
	body = strings.TrimRight(Text(body), "\n")
	if body == "" || s.Width == 0 {
		return ended(body)
	}
	t := markdown.Terminal{Width: min(s.Width-indent, widestText), Columns: columns, Plain: Text}
	if s.colour {
		t.Paint = s.styled
	}
	if text, ok := t.Render(body); ok {
		body = strings.TrimRight(text, "\n")
	}
	var b strings.Builder
	for line := range strings.Lines(ended(body)) {
		if line != "\n" {
			b.WriteString(strings.Repeat(" ", indent))
		}
		b.WriteString(line)
	}
	return b.String()
}

// ended returns a text with a line end, unless it is empty.
func ended(text string) string {
	if text == "" {
		return ""
	}
	return text + "\n"
}
