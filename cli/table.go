package cli

import (
	"fmt"
	"strings"
	"unicode"
)

// Row is a line of a table: its cells, and whether it is bold.
type Row struct {
	Cells  []string
	Strong bool
}

// minLast is the smallest width of the last column; below it, lines may be longer than the terminal.
const minLast = 12

// Table prints rows in columns, without empty columns. On a terminal, the last cell of a row is cut to fit.
// Cells must be single lines.
func (s *Screen) Table(rows []Row) {
	var widths []int
	for _, r := range rows {
		for i, c := range r.Cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(c))
		}
	}
	for _, r := range rows {
		var b strings.Builder
		for i, c := range r.Cells {
			if widths[i] == 0 {
				continue
			}
			if i < len(r.Cells)-1 {
				fmt.Fprintf(&b, "%s%*s", c, widths[i]-columns(c)+2, "")
				continue
			}
			if s.Width > 0 {
				c = fit(c, max(minLast, s.Width-columns(b.String())))
			}
			b.WriteString(c)
		}
		line := strings.TrimRight(b.String(), " ")
		if r.Strong {
			line = s.Bold(line)
		}
		s.Printf("%s\n", line)
	}
}

// fit cuts a text to the given number of terminal columns.
func fit(text string, most int) string {
	if columns(text) <= most {
		return text
	}
	n := 0
	for i, r := range text {
		if n += runeColumns(r); n > most-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// columns returns how many terminal columns a text takes.
func columns(text string) int {
	n := 0
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

// wide are the characters that take two columns on most terminals: East Asian scripts and emoji.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1},
		{Lo: 0x2e80, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1},
		{Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff00, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1},
		{Lo: 0x1f900, Hi: 0x1faff, Stride: 1},
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}

func runeColumns(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}
