package message

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// maxCell is the most bytes of text in a cell of a table of data. A longer text belongs to a table that only
// arranges a page.
const maxCell = 300

// prepareTables changes the tables of a document, because a cell of a markdown table has one line, and the
// converter joins the cells of any other table without a blank. In a table of data each cell becomes one
// line. Of a table that arranges a page, each cell becomes a block.
func prepareTables(doc *html.Node) {
	for _, t := range elementsOf(doc, "table") {
		cells := cellsOf(t)
		if isData(t, cells) {
			for _, cell := range cells {
				flatten(cell)
			}
			continue
		}
		for _, n := range append(elementsOf(t, "tbody", "thead", "tfoot", "tr", "caption"), append(cells, t)...) {
			if tableOf(n) == t {
				n.Data, n.DataAtom = "div", atom.Div
			}
		}
	}
}

// elementsOf returns the elements below n with one of the names. An inner element comes before the elements
// around it.
func elementsOf(n *html.Node, names ...string) (all []*html.Node) {
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && slices.Contains(names, d.Data) {
			all = append(all, d)
		}
	}
	slices.Reverse(all)
	return all
}

// tableOf returns the table that an element belongs to; a table belongs to itself.
func tableOf(n *html.Node) *html.Node {
	for ; n != nil; n = n.Parent {
		if n.Data == "table" {
			return n
		}
	}
	return nil
}

// cellsOf returns the cells of a table without the cells of tables inside.
func cellsOf(t *html.Node) []*html.Node {
	return slices.DeleteFunc(elementsOf(t, "td", "th"), func(n *html.Node) bool { return tableOf(n) != t })
}

// isData reports whether a table has data: short texts in two or more columns or below a heading. A table that
// arranges a page has one column, long texts, or elements that a markdown table cannot contain.
func isData(t *html.Node, cells []*html.Node) bool {
	role := attribute(t, "role")
	if role == "presentation" || role == "none" || isMarked(t) {
		return false
	}
	if len(elementsOf(t, "table", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "blockquote")) > 0 {
		return false
	}
	heading, columns := false, 0
	inRow := map[*html.Node]int{} // cells by row
	for _, cell := range cells {
		heading = heading || cell.Data == "th"
		inRow[cell.Parent]++
		columns = max(columns, inRow[cell.Parent])
		if len(textOf(cell)) > maxCell {
			return false
		}
	}
	return heading || columns > 1
}

// isMarked reports whether a table is inside a link or emphasis, which cannot contain a table in markdown.
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

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// flatten puts the content of a cell on one line: a blank replaces each line break and separates paragraphs,
// a semicolon separates the items of a list.
func flatten(cell *html.Node) {
	for _, n := range elementsOf(cell, "br", "p", "div", "pre", "ul", "ol", "dl", "dt", "dd", "li", "address", "section", "article", "center") {
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
