// Package question decides which messages ask for an answer. It does not read files.
package question

import "strings"

// Asks reports whether a message asks its recipients for something. It does if the sender requests an acknowledgment,
// or if the subject or the last paragraph of the body ends in a question mark. A reply's subject does not count,
// because it repeats the subject of the original message.
func Asks(subject, body string, ackRequired bool) bool {
	isReply := len(subject) >= 3 && strings.EqualFold(subject[:3], "re:")
	return ackRequired || !isReply && endsInMark(subject) || endsInMark(lastParagraph(body))
}

// endsInMark reports whether text ends in a question mark, ignoring Markdown, closing quotation marks and closing
// parentheses after it.
func endsInMark(text string) bool {
	text = strings.TrimRight(text, " \t\r\n*_`\"'”’»)]")
	return strings.HasSuffix(text, "?") || strings.HasSuffix(text, "？")
}

// lastParagraph returns the last line of the last paragraph that the author of a body wrote. It skips quotes, the line
// that introduces a quote, fenced code, and the signature of an email.
func lastParagraph(body string) (last string) {
	fence, before, open := "", "", false
	for line := range strings.Lines(body) {
		line = strings.TrimRight(line, "\r\n")
		text := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(text, fence) && strings.Trim(text, fence[:1]) == "" {
				fence = ""
			}
		case strings.HasPrefix(text, "```") || strings.HasPrefix(text, "~~~"):
			fence = text[:len(text)-len(strings.TrimLeft(text, text[:1]))]
			open = false
		case line == "-- ":
			return last
		case text == "":
			open = false
		case text[0] == '>':
			if strings.HasSuffix(last, ":") { // "On Friday, Ann wrote:"
				last = before
			}
			open = false
		default:
			if !open {
				before = last
			}
			last, open = text, true
		}
	}
	return last
}
