package markdown

import (
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// Terminal describes the terminal that bodies are rendered for.
type Terminal struct {
	Width   int                             // number of columns in a line; code and long words may exceed it
	Columns func(text string) int           // returns the number of columns that text takes up
	Plain   func(text string) string        // replaces terminal control characters in the sender's text
	Paint   func(codes, text string) string // adds ECMA-48 codes, such as "1;3", to text; if nil, Render keeps the markup
}

// Render converts a body to lines for the terminal. If the body is larger than [Limit] or goldmark fails, it returns
// "" and false, and the caller should show the body as plain text. Every piece of the body is passed to Plain after
// its character references have been resolved, and before it is passed to Paint.
func (t Terminal) Render(body string) (text string, ok bool) {
	source := []byte(normalize(body))
	if len(source) > Limit {
		return "", false
	}
	doc := parseTree(source)
	if doc == nil {
		return "", false
	}
	defer func() {
		if recover() != nil {
			text, ok = "", false
		}
	}()
	s := sheet{Terminal: t, source: source}
	s.blocks(doc, &margin{}, false)
	return s.out.String(), true
}

// sheet collects the output lines for a body.
type sheet struct {
	Terminal
	source []byte
	out    strings.Builder
}

// margin is the text at the beginning of each line of a block.
type margin struct {
	first, rest string
	width       int // width of first, and of rest, in columns
}

// next returns the text for the beginning of the next line.
func (m *margin) next() string {
	now := m.first
	m.first = m.rest
	return now
}

// inner returns the margin of a block inside the block with margin m. If the blocks are deeply nested, inner adds
// nothing, so that at least half of the width is left for text.
func (s *sheet) inner(m *margin, first, rest string, style style) *margin {
	width := s.Columns(first)
	if m.width+width > s.Width/2 {
		return m
	}
	return &margin{m.next() + s.paint(style, first), m.rest + s.paint(style, rest), m.width + width}
}

func (s *sheet) line(m *margin, text string) {
	s.out.WriteString(strings.TrimRight(m.next()+text, " ") + "\n")
}

// blocks writes the child blocks of parent. If tight is set, it omits the blank lines between them.
func (s *sheet) blocks(parent ast.Node, m *margin, tight bool) {
	written := false
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindLinkReferenceDefinition {
			continue
		}
		if written && !tight {
			s.line(m, "")
		}
		s.block(n, m)
		written = true
	}
}

func (s *sheet) block(n ast.Node, m *margin) {
	switch n := n.(type) {
	case *ast.Heading:
		if s.Paint == nil {
			m = s.inner(m, strings.Repeat("#", n.Level)+" ", "", 0)
		}
		s.prose(n, m, bold)
	case *ast.ThematicBreak:
		s.line(m, s.paint(faint, strings.Repeat("─", max(3, s.Width-m.width))))
	case *ast.CodeBlock, *ast.FencedCodeBlock, *ast.HTMLBlock:
		s.code(n, s.inner(m, "  ", "  ", 0))
	case *ast.Blockquote:
		s.blocks(n, s.inner(m, "│ ", "│ ", faint), false)
	case *ast.List:
		s.list(n, m)
	case *extast.Table:
		s.table(n, m)
	default:
		s.prose(n, m, 0)
	}
}

// code writes the lines of a code block unchanged.
func (s *sheet) code(n ast.Node, m *margin) {
	write := func(line []byte) { s.line(m, s.paintLine(faint, strings.TrimSuffix(string(line), "\n"))) }
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		write(line.Value(s.source))
	}
	if b, ok := n.(*ast.HTMLBlock); ok && b.HasClosure() {
		write(b.ClosureLine.Value(s.source))
	}
}

func (s *sheet) list(l *ast.List, m *margin) {
	number := l.Start
	for item := l.FirstChild(); item != nil; item = item.NextSibling() {
		if item.PreviousSibling() != nil && !l.IsTight {
			s.line(m, "")
		}
		mark := "- "
		if l.IsOrdered() {
			mark = strconv.Itoa(number) + ". "
			number++
		}
		in := s.inner(m, mark, strings.Repeat(" ", len(mark)), 0)
		if item.FirstChild() == nil {
			s.line(in, "")
		}
		s.blocks(item, in, l.IsTight)
	}
}

func (s *sheet) prose(n ast.Node, m *margin, base style) {
	for _, line := range s.wrap(s.words(n, base), s.Width-m.width) {
		s.line(m, s.paintAll(line))
	}
}

// leastCell is the smallest width to which a table column is narrowed.
const leastCell = 8

// table writes a table, and narrows the table's columns to fit the width. If the table has too many columns, it
// writes the rows as wrapped text instead.
func (s *sheet) table(t *extast.Table, m *margin) {
	width := s.Width - m.width
	var rows [][][]word
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		base := style(0)
		if row.Kind() == extast.KindTableHeader {
			base = bold
		}
		var cells [][]word
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, s.words(cell, base))
		}
		rows = append(rows, cells)
	}
	if columns := len(t.Alignments); columns*(leastCell+2) > width {
		for _, cells := range rows {
			var line []word
			for i, c := range cells {
				if i > 0 {
					line = append(line, word{pieces: []piece{{faint, "|"}}})
				}
				line = append(line, c...)
			}
			for _, l := range s.wrap(line, width) {
				s.line(m, s.paintAll(l))
			}
		}
		return
	}
	widths := s.cellWidths(rows, width-2*(len(t.Alignments)-1))
	for i, cells := range rows {
		s.row(cells, widths, t.Alignments, m)
		if i > 0 {
			continue
		}
		rules := make([]string, len(widths))
		for i, w := range widths {
			rules[i] = strings.Repeat("─", w)
		}
		s.line(m, s.paint(faint, strings.Join(rules, "  ")))
	}
}

// cellWidths returns the widths of a table's columns. Their sum is at most total. If necessary, cellWidths narrows the
// widest columns to a common width.
func (s *sheet) cellWidths(rows [][][]word, total int) []int {
	var widths []int
	for _, cells := range rows {
		for i, c := range cells {
			if i == len(widths) {
				widths = append(widths, 1)
			}
			for _, line := range s.wrap(c, total) {
				widths[i] = max(widths[i], s.lineColumns(line))
			}
		}
	}
	for most := total; most >= leastCell; most-- {
		sum := 0
		for _, w := range widths {
			sum += min(w, most)
		}
		if sum <= total || most == leastCell {
			for i := range widths {
				widths[i] = min(widths[i], most)
			}
			break
		}
	}
	return widths
}

// row writes the cells of a table row next to each other.
func (s *sheet) row(cells [][]word, widths []int, to []extast.Alignment, m *margin) {
	height, lines := 1, make([][][]piece, len(cells))
	for i, c := range cells {
		lines[i] = s.wrap(s.broken(c, widths[i]), widths[i])
		height = max(height, len(lines[i]))
	}
	for at := range height {
		var b strings.Builder
		for i := range cells {
			var line []piece
			if at < len(lines[i]) {
				line = lines[i][at]
			}
			left := widths[i] - s.lineColumns(line)
			before := 0
			switch to[i] {
			case extast.AlignRight:
				before = left
			case extast.AlignCenter:
				before = left / 2
			}
			b.WriteString(strings.Repeat(" ", before) + s.paintAll(line) + strings.Repeat(" ", left-before))
			if i < len(cells)-1 {
				b.WriteString("  ")
			}
		}
		s.line(m, b.String())
	}
}

// broken breaks words that are wider than their table column.
func (s *sheet) broken(words []word, width int) (all []word) {
	for _, w := range words {
		if s.lineColumns(w.pieces) <= width {
			all = append(all, w)
			continue
		}
		part, used := word{}, 0
		for _, p := range w.pieces {
			for _, r := range p.text {
				n := s.Columns(string(r))
				if used+n > width && used > 0 {
					all = append(all, part)
					part, used = word{}, 0
				}
				part.pieces = joined(part.pieces, piece{p.style, string(r)})
				used += n
			}
		}
		part.ends = w.ends
		all = append(all, part)
	}
	return all
}

// wrap arranges words in lines of up to width columns. A word that is wider gets a line of its own.
func (s *sheet) wrap(words []word, width int) (lines [][]piece) {
	var line []piece
	used := 0
	for _, w := range words {
		n := s.lineColumns(w.pieces)
		if used > 0 && used+1+n > width {
			lines = append(lines, line)
			line, used = nil, 0
		}
		if used > 0 {
			line = joined(line, piece{line[len(line)-1].style & w.pieces[0].style, " "})
			used++
		}
		for _, p := range w.pieces {
			line = joined(line, p)
		}
		used += n
		if w.ends {
			lines = append(lines, line)
			line, used = nil, 0
		}
	}
	if used > 0 {
		lines = append(lines, line)
	}
	return lines
}

func (s *sheet) lineColumns(line []piece) (n int) {
	for _, p := range line {
		n += s.Columns(p.text)
	}
	return n
}

// joined appends a piece to a line.
func joined(line []piece, p piece) []piece {
	if last := len(line) - 1; last >= 0 && line[last].style == p.style {
		line = slices.Clone(line) // several words may share this slice
		line[last].text += p.text
		return line
	}
	return append(line, p)
}
