package markdown

import (
	"bytes"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// style is a set of text styles.
type style uint8

const (
	bold style = 1 << iota
	faint
	italic
	underlined
	struck
	literal // inline code
)

// renditions lists the code for each style (ECMA-48, SGR).
var renditions = []struct {
	style style
	code  string
}{
	{bold, "1"}, {faint, "2"}, {italic, "3"}, {underlined, "4"}, {struck, "9"}, {literal, "2"},
}

// piece is text in one style. Plain has already been applied to it.
type piece struct {
	style style
	text  string
}

// word is text that stays on one line. If ends is set, a line break follows the word.
type word struct {
	pieces []piece
	ends   bool
}

// paint returns text with the codes of a style. If the text comes from the body, the caller must already have applied
// Plain to it.
func (s *sheet) paint(in style, text string) string {
	if text == "" || in == 0 || s.Paint == nil {
		return text
	}
	var codes []string
	for _, r := range renditions {
		if in&r.style != 0 {
			codes = append(codes, r.code)
		}
	}
	return s.Paint(strings.Join(codes, ";"), text)
}

// paintLine applies Plain to a line of the sender's text, and returns it with the codes of a style.
func (s *sheet) paintLine(in style, text string) string { return s.paint(in, s.Plain(text)) }

func (s *sheet) paintAll(line []piece) string {
	var b strings.Builder
	for _, p := range line {
		b.WriteString(s.paint(p.style, p.text))
	}
	return b.String()
}

// words returns the words in a block's inline children. The argument base is the style of plain words.
func (s *sheet) words(n ast.Node, base style) []word {
	c := wordCollector{sheet: s}
	c.children(n, base)
	return c.all
}

// wordCollector collects words from inline nodes.
type wordCollector struct {
	*sheet
	all  []word
	open bool // more text may be added to the last word
}

func (c *wordCollector) children(n ast.Node, in style) {
	for k := n.FirstChild(); k != nil; k = k.NextSibling() {
		c.inline(k, in)
	}
}

func (c *wordCollector) inline(n ast.Node, in style) {
	switch n := n.(type) {
	case *ast.Text:
		c.write(in, unescape(string(n.Value(c.source))))
		if n.SoftLineBreak() || n.HardLineBreak() {
			c.open = false
		}
		if n.HardLineBreak() && len(c.all) > 0 {
			c.all[len(c.all)-1].ends = true
		}
	case *ast.CodeSpan:
		c.within("`", func() { c.code(n, in) })
	case *ast.Emphasis:
		within, markup := italic, "*"
		if n.Level > 1 {
			within, markup = bold, "**"
		}
		c.within(markup, func() { c.children(n, in|within) })
	case *extast.Strikethrough:
		c.within("~~", func() { c.children(n, in|struck) })
	case *extast.TaskCheckBox:
		box := "[ ]"
		if n.IsChecked {
			box = "[x]"
		}
		c.all = append(c.all, word{pieces: []piece{{in, box}}})
	case *ast.AutoLink:
		c.write(in|underlined, string(n.Label(c.source)))
	case *ast.Link:
		c.link(n, n.Destination, in|underlined)
	case *ast.Image:
		c.write(in, "[image: ")
		c.link(n, n.Destination, in)
		c.write(in, "]")
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			segment := n.Segments.At(i)
			c.write(in, string(segment.Value(c.source)))
		}
	default:
		c.children(n, in)
	}
}

// within calls write to add content. If the terminal has no styles, within also writes the markup before and after it.
func (c *wordCollector) within(markup string, write func()) {
	if c.Paint != nil {
		markup = ""
	}
	c.write(0, markup)
	write()
	if markup != "" && len(c.all) > 0 {
		c.open = true
	}
	c.write(0, markup)
}

// link writes the content of a link or image, followed by the address if it differs from the content.
func (c *wordCollector) link(n ast.Node, to []byte, in style) {
	c.children(n, in)
	if readProse(c.source, n) != string(to) && !bytes.HasPrefix(to, []byte("data:")) {
		c.write(faint, " ("+unescape(string(to))+")")
	}
}

// code writes a code span.
func (c *wordCollector) code(n *ast.CodeSpan, in style) {
	for _, text := range codeTexts(n, c.source) {
		c.write(in|literal, text)
	}
}

// write adds text. White space in the text ends a word.
func (c *wordCollector) write(in style, text string) {
	for len(text) > 0 {
		end := strings.IndexFunc(text, blank)
		if end != 0 {
			if end < 0 {
				end = len(text)
			}
			if !c.open {
				c.all = append(c.all, word{})
			}
			w := &c.all[len(c.all)-1]
			w.pieces = joined(w.pieces, piece{in, c.Plain(text[:end])})
			c.open = true
			text = text[end:]
			continue
		}
		c.open = false
		text = strings.TrimLeftFunc(text, blank)
	}
}
