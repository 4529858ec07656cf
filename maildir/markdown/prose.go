package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// prose is the plain text of one block, on one line.
//
// code holds the code spans.
//
// mask is as long as text and equal to it, but for "X" in place of each byte
// that came from a code span, an image or an address: what has a meaning is looked
// for in mask and cut out of text.
type prose struct {
	text, mask string
	lines      []int // where the block's lines begin; lines[0] is 0
	task, done bool  // the block begins with a task box, and it is ticked
	code       []string
}

// slice is the part of the prose from start to end, without its lines.
func (p prose) slice(start, end int) prose {
	return prose{text: p.text[start:end], mask: p.mask[start:end], lines: []int{0}}
}

// line returns the bounds of the i-th line, without the space that ends it.
func (p prose) line(i int) (start, end int) {
	if i+1 < len(p.lines) {
		return p.lines[i], p.lines[i+1] - 1
	}
	return p.lines[i], len(p.text)
}

// proseBuilder collects prose from inline nodes.
type proseBuilder struct {
	source     []byte
	text, mask strings.Builder
	out        prose
	gap, wrap  bool // a space, a line end is due before the next rune
	masked     bool
}

// readProse returns the prose of a block's inline children.
func readProse(source []byte, block ast.Node) prose {
	b := proseBuilder{source: source}
	b.out.lines = []int{0}
	b.children(block)
	b.out.text, b.out.mask = b.text.String(), b.mask.String()
	return b.out
}

func (b *proseBuilder) children(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		b.inline(c)
	}
}

func (b *proseBuilder) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		b.run(n)
	case *ast.CodeSpan:
		start := b.text.Len()
		b.hide(func() { b.code(n) })
		b.out.code = append(b.out.code, strings.TrimSpace(b.text.String()[start:]))
	case *ast.AutoLink:
		b.hide(func() { b.write(string(n.Label(b.source))) })
	case *ast.Image:
		b.image(n)
	case *ast.RawHTML:
		b.tag(n)
	case *extast.TaskCheckBox:
		b.out.task, b.out.done = true, n.IsChecked
	default: // emphasis, links: what they enclose
		b.children(n)
	}
}

func (b *proseBuilder) run(n *ast.Text) {
	b.write(unescape(string(n.Value(b.source))))
	if n.SoftLineBreak() || n.HardLineBreak() {
		b.wrap = true
	}
}

// code writes a code span. In a table cell "\|" is a pipe, in code too.
func (b *proseBuilder) code(n *ast.CodeSpan) {
	_, cell := n.Parent().(*extast.TableCell)
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		t, ok := c.(*ast.Text)
		if !ok {
			continue
		}
		s := string(t.Value(b.source))
		if cell {
			s = strings.ReplaceAll(s, `\|`, "|")
		}
		b.write(s)
	}
}

func (b *proseBuilder) image(n *ast.Image) {
	// Images nest: without a bound each level would copy the text of the next.
	alt := clip(readProse(b.source, n).text, textRunes)
	b.hide(func() { b.write(alt) })
}

// tag drops an HTML tag; a line break stays one.
func (b *proseBuilder) tag(n *ast.RawHTML) {
	if n.Segments.Len() == 0 {
		return
	}
	segment := n.Segments.At(0)
	if s := segment.Value(b.source); len(s) > 3 && strings.EqualFold(string(s[:3]), "<br") {
		b.wrap = true
	}
}

// hide masks what f writes.
func (b *proseBuilder) hide(f func()) {
	was := b.masked
	b.masked = true
	f()
	b.masked = was
}

// write appends s, blanks folded, none at the start or end.
func (b *proseBuilder) write(s string) {
	for _, r := range s {
		if blank(r) {
			b.gap = true
			continue
		}
		b.space()
		n, _ := b.text.WriteRune(r)
		if b.masked {
			b.mask.WriteString("XXXX"[:n])
		} else {
			b.mask.WriteRune(r)
		}
	}
}

// space writes the space or line end that is due.
func (b *proseBuilder) space() {
	if (b.gap || b.wrap) && b.text.Len() > 0 {
		b.text.WriteByte(' ')
		b.mask.WriteByte(' ')
		if b.wrap {
			b.out.lines = append(b.out.lines, b.text.Len())
		}
	}
	b.gap, b.wrap = false, false
}
