package cli

import (
	"fmt"
	"strings"
)

// Row is a row of a table.
type Row struct {
	Title  string // a line above the row; may be empty
	Cells  []string
	Strong bool   // bold
	Head   bool   // these are the columns' headings, which are shown only for columns that are not empty
	Below  string // an indented line below the row, broken between words on a terminal; may be empty
}

// minColumn is the minimum width to which Table cuts a column.
const minColumn = 3

// maxName is the maximum width of a first column that is assumed to contain names. Table cuts such a column last.
const maxName = 20

// Table prints rows in columns, and leaves out empty columns. On a terminal, it cuts the widest columns so that every
// line fits. Cells must be single lines.
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
		switch {
		case r.Strong:
			line = s.Bold(line)
		case r.Head && line == "":
			continue
		case r.Head:
			line = s.Faint(line)
		}
		s.Printf("%s\n", line)
		if r.Below != "" {
			s.Tell("    %s\n", r.Below)
		}
	}
}

// fitColumns returns the widths of the columns.
func (s *Screen) fitColumns(rows []Row) (widths []int) {
	for _, heads := range []bool{false, true} {
		for _, r := range rows {
			if r.Head != heads {
				continue
			}
			for i, c := range r.Cells {
				if i == len(widths) {
					widths = append(widths, 0)
				}
				if !heads || widths[i] > 0 {
					widths[i] = max(widths[i], columns(c))
				}
			}
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
			short := widest == 0 && widths[0] <= maxName && w > minColumn // cut the column of names last
			if w >= widths[widest] || short {
				widest = i
			}
		}
		if widths[widest] <= minColumn {
			break
		}
		widths[widest]--
	}
	return widths
}

// If a row begins with one of these characters, Lay prints the row in bold, or as column headings.
const (
	Strong = "\a"
	Head   = "\v"
)

// Lay prints lines. It passes lines with tabs to Table, and lines that begin with a tab to Facts.
func (s *Screen) Lay(text string) {
	var rows, facts []Row
	end := func() {
		s.Table(rows)
		s.Facts(facts)
		rows, facts = nil, nil
	}
	for line := range strings.Lines(text) {
		line, strong := strings.CutPrefix(strings.TrimSuffix(line, "\n"), Strong)
		line, head := strings.CutPrefix(line, Head)
		switch cells := strings.Split(line, "\t"); {
		case len(cells) == 1:
			end()
			s.Tell("%s\n", line)
		case cells[0] == "":
			facts = append(facts, Row{Cells: cells[1:]})
		default:
			rows = append(rows, Row{Cells: cells, Strong: strong, Head: head})
		}
	}
	end()
}
