package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
)

// proseBuilder collects the plain text of inline nodes. It folds white space, and ends lines with "\n".
type proseBuilder struct {
	source    []byte
	text      strings.Builder
	gap, wrap bool // a space or a line ending must precede the next rune
}

// readProse returns the plain text of a block's inline children.
func readProse(source []byte, block ast.Node) string {
	b := proseBuilder{source: source}
	b.children(block)
	return b.text.String()
}

func (b *proseBuilder) children(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		b.inline(c)
	}
}

func (b *proseBuilder) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		b.write(unescape(string(n.Value(b.source))))
		if n.SoftLineBreak() || n.HardLineBreak() {
			b.wrap = true
		}
	case *ast.CodeSpan:
		b.code(n)
	case *ast.AutoLink:
		b.write(string(n.Label(b.source)))
	case *ast.RawHTML:
		b.tag(n)
	default: // emphasis, links and images: write only the content
		b.children(n)
	}
}

// code writes a code span.
func (b *proseBuilder) code(n *ast.CodeSpan) {
	for _, text := range codeTexts(n, b.source) {
		b.write(text)
	}
}

// tag drops an HTML tag, but keeps the line break of a <br>.
func (b *proseBuilder) tag(n *ast.RawHTML) {
	if n.Segments.Len() == 0 {
		return
	}
	segment := n.Segments.At(0)
	if s := segment.Value(b.source); len(s) > 3 && strings.EqualFold(string(s[:3]), "<br") {
		b.wrap = true
	}
}

// write appends s and folds white space. White space at the beginning and end of the whole text is dropped.
func (b *proseBuilder) write(s string) {
	for _, r := range s {
		if blank(r) {
			b.gap = true
			continue
		}
		b.space()
		b.text.WriteRune(r)
	}
}

// space writes the pending space or line ending.
func (b *proseBuilder) space() {
	switch {
	case b.text.Len() == 0:
	case b.wrap:
		b.text.WriteByte('\n')
	case b.gap:
		b.text.WriteByte(' ')
	}
	b.gap, b.wrap = false, false
}
