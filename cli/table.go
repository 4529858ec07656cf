package cli

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Row is a line of a table.
type Row struct {
	Title  string // a line above the row; "" for none
	Cells  []string
	Strong bool // bold
}

// minColumn is the smallest width to which a column is cut.
const minColumn = 3

// Table prints rows in columns, without empty columns. On a terminal it cuts the widest columns so that
// every line fits. Cells must be single lines.
func (s *Screen) Table(rows []Row) {
	widths := s.fitColumns(rows)
	for _, r := range rows {
		if r.Title != "" {
			s.Printf("%s\n", s.Bold(r.Title))
		}
		var b strings.Builder
		for i, c := range r.Cells {
			if widths[i] > 0 {
				c = Fit(c, widths[i])
				fmt.Fprintf(&b, "%s%*s", c, widths[i]-columns(c)+2, "")
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if r.Strong {
			line = s.Bold(line)
		}
		s.Printf("%s\n", line)
	}
}

// fitColumns returns the widths of the columns.
func (s *Screen) fitColumns(rows []Row) (widths []int) {
	for _, r := range rows {
		for i, c := range r.Cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(c))
		}
	}
	if s.Width == 0 {
		return widths
	}
	excess := -2 - s.Width
	for _, w := range widths {
		if w > 0 {
			excess += w + 2
		}
	}
	for ; excess > 0; excess-- {
		widest := 0
		for i, w := range widths {
			if w >= widths[widest] {
				widest = i
			}
		}
		if widths[widest] == minColumn {
			break
		}
		widths[widest]--
	}
	return widths
}

// style matches what Screen adds to a text for bold or colour. Texts by others have none: see Line.
var style = regexp.MustCompile("\x1b\\[[0-9]+m")

// Fit cuts a text to the given number of terminal columns. A text that is cut loses its style.
func Fit(text string, most int) string {
	if columns(text) <= most {
		return text
	}
	text = style.ReplaceAllString(text, "")
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
	for _, r := range style.ReplaceAllString(text, "") {
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

// Strong begins a line of Lay that is a bold row.
const Strong = "\a"

// Lay prints lines. Those with tabs are rows of tables, see Table; those that begin with a tab are facts.
func (s *Screen) Lay(text string) {
	var rows, facts []Row
	end := func() {
		s.Table(rows)
		s.Facts(facts)
		rows, facts = nil, nil
	}
	for line := range strings.Lines(text) {
		line, strong := strings.CutPrefix(strings.TrimSuffix(line, "\n"), Strong)
		switch cells := strings.Split(line, "\t"); {
		case len(cells) == 1:
			end()
			s.Printf("%s\n", line)
		case cells[0] == "":
			facts = append(facts, Row{Cells: cells[1:]})
		default:
			rows = append(rows, Row{Cells: cells, Strong: strong})
		}
	}
	end()
}
