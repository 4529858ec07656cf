package message

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxCell is the maximum number of bytes of text in a cell of a data table. A table with a longer cell is treated as
// a layout table, which only arranges the page.
const maxCell = 300

// prepareTables changes the tables of a document so that the converter can handle them. In a data table, each cell
// becomes a single line, because markdown tables do not allow multiline cells. In a layout table, each cell becomes a
// block, because otherwise the converter would join the cells without a space. The HTML is untrusted, so prepareTables
// visits each node only a fixed number of times, regardless of the structure of the tables.
func prepareTables(doc *html.Node) { new(tableParts).collect(doc) }

// tableParts contains the elements of a table, excluding the elements of nested tables.
type tableParts struct {
	table   *html.Node
	groups  []*html.Node // row groups, rows and captions
	cells   []*html.Node
	longest int  // bytes of text in the longest cell
	blocks  bool // whether the table contains a data table or another element that markdown tables cannot contain
}

// collect adds the elements below n to the parts, prepares the tables below n, and returns the number of bytes of text
// below n.
func (t *tableParts) collect(n *html.Node) (text int) {
	for c := range n.ChildNodes() {
		switch c.Type {
		case html.TextNode:
			text += len(c.Data)
		case html.ElementNode:
			text += t.add(c)
		}
	}
	return text
}

// add adds an element and the elements below it to the parts, and returns the number of bytes of text below the
// element.
func (t *tableParts) add(n *html.Node) (text int) {
	switch n.Data {
	case "table":
		inner := &tableParts{table: n}
		text = inner.collect(n)
		t.blocks = inner.prepare() || t.blocks
		return text
	case "td", "th":
		text = t.collect(n)
		t.cells, t.longest = append(t.cells, n), max(t.longest, text)
		return text
	case "tbody", "thead", "tfoot", "tr", "caption":
		t.groups = append(t.groups, n)
	case "h1", "h2", "h3", "h4", "h5", "h6", "hr", "blockquote":
		t.blocks = true
	}
	return t.collect(n)
}

// prepare changes the table. It reports whether this table prevents an enclosing table from being a data table.
func (t *tableParts) prepare() (blocks bool) {
	if t.isData() {
		for _, cell := range t.cells {
			flatten(cell)
		}
		return true
	}
	for _, n := range slices.Concat([]*html.Node{t.table}, t.groups, t.cells) {
		n.Data, n.DataAtom = "div", atom.Div
	}
	return t.blocks
}

// isData reports whether a table is a data table. A data table has a heading or at least two columns, and no cell with
// long text. A layout table has one column, long text, or elements that markdown tables cannot contain.
func (t *tableParts) isData() bool {
	role := attribute(t.table, "role")
	if role == "presentation" || role == "none" || t.blocks || t.longest > maxCell || isMarked(t.table) {
		return false
	}
	for i, cell := range t.cells {
		if cell.Data == "th" || i > 0 && cell.Parent == t.cells[i-1].Parent {
			return true
		}
	}
	return false
}

// elementsOf returns the elements below n that have one of the names. Inner elements come before the elements that
// enclose them.
func elementsOf(n *html.Node, names ...string) (all []*html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && slices.Contains(names, d.Data) {
			all = append(all, d)
		}
	}
	slices.Reverse(all)
	return all
}

// isMarked reports whether a table is inside a link or emphasis, neither of which can contain a table in markdown.
func isMarked(t *html.Node) bool {
	for a := range t.Ancestors() {
		if slices.Contains([]string{"a", "strong", "b", "em", "i", "del", "s", "strike"}, a.Data) {
			return true
		}
	}
	return false
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return strings.ToLower(strings.TrimSpace(a.Val))
		}
	}
	return ""
}

// lines contains the elements that start a new line.
var lines = []string{"br", "p", "div", "pre", "ul", "ol", "dl", "dt", "dd", "li", "address", "section", "article", "center"}

// flatten converts a cell's content to a single line. It replaces line breaks with spaces, separates paragraphs with
// spaces, and separates list items with semicolons.
func flatten(cell *html.Node) {
	for _, n := range elementsOf(cell, lines...) {
		separator := " "
		if n.Data == "li" && hasItemBefore(n) {
			separator = "; "
		}
		n.Parent.InsertBefore(&html.Node{Type: html.TextNode, Data: separator}, n)
		if n.Data == "br" {
			n.Parent.RemoveChild(n)
			continue
		}
		if n.Data != "li" {
			n.Parent.InsertBefore(&html.Node{Type: html.TextNode, Data: " "}, n.NextSibling)
		}
		n.Data, n.DataAtom = "span", atom.Span
	}
}

func hasItemBefore(n *html.Node) bool {
	for s := n.PrevSibling; s != nil; s = s.PrevSibling {
		if s.Type == html.ElementNode {
			return true
		}
	}
	return false
}
