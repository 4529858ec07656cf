package cli

import (
	"strings"

	"mailtree/maildir/lazy"
	"mailtree/maildir/markdown"
)

// widestText is the maximum width of a line of text, in columns. Longer lines are hard to read.
const widestText = 96

// Markdown returns a message body written by others. On a terminal, it renders the body to fit the terminal's width,
// and indents each line by indent spaces. Otherwise, it does not change the body. The result ends with a newline unless
// it is empty.
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

// ended adds a newline to text unless text is empty.
func ended(text string) string {
	if text == "" {
		return ""
	}
	return text + "\n"
}

// markupWord matches markup that is left in an excerpt of a body. This includes code fences, and words that consist
// only of markup characters.
var markupWord = lazy.Regexp("`+|(^| )[#|>*_~=:-]+( |$)")

// Snippet formats an excerpt that a search found in a message as a single line. In the argument, each match is enclosed
// in **. In the result, the matches are bold if the screen supports bold text. Snippet returns "" if the excerpt is
// part of the subject.
func (s *Screen) Snippet(snippet, subject string) string {
	parts := strings.Split(Line(snippet), "**")
	if len(parts)%2 == 0 { // the message itself contains some of the **
		parts = []string{strings.Join(parts, "")}
	}
	if strings.Contains(subject, strings.Trim(strings.Join(parts, ""), "… ")) {
		return ""
	}
	for i := range parts {
		for markupWord().MatchString(parts[i]) {
			parts[i] = markupWord().ReplaceAllStringFunc(parts[i], func(mark string) string {
				return strings.Repeat(" ", min(1, strings.Count(mark, " ")))
			})
		}
		if i%2 == 1 {
			parts[i] = s.Bold(parts[i])
		}
	}
	return strings.Join(strings.Fields(strings.Join(parts, "")), " ")
}
