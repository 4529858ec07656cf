package summary

import (
	"strings"

	"mailtree/maildir/lazy"
)

// statement is a heading, a list item or a paragraph, joined into one line. A line that begins with a mark begins a new
// statement.
type statement struct {
	kind kind
	top  bool // the list item is not indented
	text string

	lines []string // the lines that make up text
}

type kind int

const (
	paragraph kind = iota
	item
	heading
)

var (
	fence       = lazy.Regexp("^[ \t]*(```+|~~~+)")
	listItem    = lazy.Regexp(`^([ \t]*)(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(.+)$`)
	headingLine = lazy.Regexp(`^#{1,6}[ \t]+(.*?)[ \t#]*$`)
	ruler       = lazy.Regexp(`^[-=*_ \t]+$`)
)

// statements splits a body into statements. It skips quotes, code blocks, tables and HTML, which are not the sender's
// own words.
func statements(body string) (all []statement) {
	open, ended := "", true // open is the fence of the open code block; ended reports whether the next line begins a new statement
	for line := range strings.Lines(body) {
		line = strings.TrimRight(strings.ReplaceAll(line, "**", ""), " \t\r\n")
		text := strings.TrimLeft(line, " \t")
		if open != "" {
			if strings.HasPrefix(text, open) {
				open = ""
			}
			continue
		}
		if m := fence().FindStringSubmatch(line); m != nil {
			open, ended = m[1], true
			continue
		}
		m := listItem().FindStringSubmatch(line)
		switch {
		case text == "" || ruler().MatchString(line) || strings.ContainsAny(text[:1], ">|<"):
			ended = true
		case headingLine().MatchString(line):
			all = append(all, statement{kind: heading, lines: headingLine().FindStringSubmatch(line)[1:]})
			ended = true
		case m != nil:
			all = append(all, statement{kind: item, top: m[1] == "", lines: m[2:]})
			ended = false
		case ended && (strings.HasPrefix(line, "    ") || line[0] == '\t'): // a code block
		case ended || marked().MatchString(text):
			all = append(all, statement{lines: []string{text}})
			ended = false
		default:
			last := &all[len(all)-1]
			last.lines = append(last.lines, text)
		}
	}
	for i := range all {
		all[i].text = strings.Join(all[i].lines, " ")
	}
	return all
}
