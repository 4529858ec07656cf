package markdown

import (
	"bytes"
	"context"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	// maxNesting is how deep quotes and lists may nest; "> > > …" below that is
	// text. Every line costs a step per level, and people stop at five.
	maxNesting = 48

	// A paragraph is searched for link reference definitions only up to this
	// size: goldmark moves all following lines for each definition.
	maxDefinitionLines = 200
	maxDefinitionBytes = 16 << 10
)

// lineReader feeds the block parser and reports the end of the text once ctx has
// ended. It does so between lines only: block parsers count on the rest of a
// line that they have begun.
type lineReader struct {
	text.Reader
	ctx  context.Context
	done bool
}

// AdvanceLine implements text.Reader.
func (r *lineReader) AdvanceLine() {
	r.Reader.AdvanceLine()
	r.done = r.done || r.ctx.Err() != nil
}

// PeekLine implements text.Reader.
func (r *lineReader) PeekLine() ([]byte, text.Segment) {
	if r.done {
		_, segment := r.Reader.Position()
		return nil, segment
	}
	return r.Reader.PeekLine()
}

// SkipBlankLines implements text.Reader, by way of the two methods above.
func (r *lineReader) SkipBlankLines() (text.Segment, int, bool) {
	for lines := 0; ; lines++ {
		line, segment := r.PeekLine()
		if line == nil || !util.IsBlank(line) {
			return segment, lines, line != nil
		}
		r.AdvanceLine()
	}
}

// nested is a container's parser that declines below maxNesting.
type nested struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (n nested) Open(parent ast.Node, r text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for p := parent; p != nil; p = p.Parent() {
		depth++
	}
	if depth > maxNesting {
		return nil, parser.NoChildren
	}
	return n.BlockParser.Open(parent, r, pc)
}

// definitions takes link reference definitions from paragraphs of sane size.
type definitions struct{}

// Transform implements parser.ParagraphTransformer.
func (definitions) Transform(node *ast.Paragraph, r text.Reader, pc parser.Context) {
	if lines := node.Lines(); lines.Len() > maxDefinitionLines || size(lines) > maxDefinitionBytes {
		return
	}
	parser.LinkReferenceParagraphTransformer.Transform(node, r, pc)
}

// tables makes tables, except those whose cells are mostly not written: goldmark
// fills up each row to the width of the header, so that 4 kB of "|" and as much
// of short rows would make millions of cells. A written cell takes a byte or more.
type tables struct{ parser.ParagraphTransformer }

// Transform implements parser.ParagraphTransformer.
func (t tables) Transform(node *ast.Paragraph, r text.Reader, pc parser.Context) {
	lines, columns := node.Lines(), 0
	for i := range lines.Len() {
		segment := lines.At(i)
		columns = max(columns, bytes.Count(segment.Value(r.Source()), []byte("|")))
	}
	if columns*lines.Len() > size(lines) {
		return
	}
	t.ParagraphTransformer.Transform(node, r, pc)
}

// size is the number of bytes in the lines.
func size(lines *text.Segments) int {
	n := 0
	for i := range lines.Len() {
		segment := lines.At(i)
		n += segment.Len()
	}
	return n
}
