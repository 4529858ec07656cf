package cli

import "strings"

// Fold breaks lines that are wider than a terminal between words. It indents the rest of a line to the
// start of its last column (columns are separated by two blanks), if that start is in the first two thirds
// of the width.
func Fold(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if columns(strings.TrimSuffix(line, "\n")) <= width {
			b.WriteString(line)
			continue
		}
		indent := 0
		for indent < len(line) && line[indent] == ' ' {
			indent++
		}
		if at := strings.LastIndex(line[:min(len(line), 2*width/3)], "  "); at >= indent {
			indent = at + 2
		}
		b.WriteString(line[:indent])
		at := indent
		for _, word := range strings.Fields(line[indent:]) {
			switch {
			case at == indent:
			case at+1+columns(word) > width:
				b.WriteString("\n" + strings.Repeat(" ", indent))
				at = indent
			default:
				b.WriteString(" ")
				at++
			}
			b.WriteString(word)
			at += columns(word)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Facts prints rows of a label and a value below each other. On a terminal a value that does not fit goes on
// below its beginning. Both must be single lines.
func (s *Screen) Facts(rows []Row) {
	width := 0
	for _, r := range rows {
		width = max(width, columns(r.Cells[0]))
	}
	for _, r := range rows {
		line := r.Cells[0] + strings.Repeat(" ", width-columns(r.Cells[0])+2) + r.Cells[1] + "\n"
		if s.Width > 0 {
			line = Fold(line, s.Width)
		}
		s.Printf("%s", line)
	}
}
