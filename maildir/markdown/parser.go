package markdown

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// parseTree returns goldmark's tree for the source, or nil if goldmark panicked. Bodies are untrusted, and a panic in
// a library must not stop the server. The argument more contains additional inline parsers.
func parseTree(source []byte, more ...util.PrioritizedValue) (doc ast.Node) {
	defer func() {
		if recover() != nil {
			doc = nil
		}
	}()
	return newParser(more...).Parse(text.NewReader(source))
}

// newParser assembles a parser for GitHub-Flavored Markdown from goldmark's parsers.
//
// The parser does not support heading ids. It also leaves out bare links, which bare.go parses, and the table
// extension's transformer for "\|" in code spans, which render.go handles.
func newParser(more ...util.PrioritizedValue) parser.Parser {
	links := parser.NewLinkParser()
	blocks := parser.DefaultBlockParsers()
	for i, b := range blocks {
		blocks[i].Value = shallow{b.Value.(parser.BlockParser)}
	}
	return parser.NewParser(
		parser.WithBlockParsers(blocks...),
		parser.WithInlineParsers(append(more,
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(images{links, links.(parser.CloseBlocker)}, 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(parser.NewRawHTMLParser(), 400),
			util.Prioritized(parser.NewEmphasisParser(), 500),
			util.Prioritized(extension.NewStrikethroughParser(), 500),
		)...),
		parser.WithParagraphTransformers(
			util.Prioritized(parser.LinkReferenceParagraphTransformer, 100),
			util.Prioritized(tables{extension.NewTableParagraphTransformer()}, 200),
		),
	)
}

// shallow limits the nesting depth of blocks. Beyond maxDepth, it opens only paragraphs, so the markup of deeper blocks
// becomes text. Without this limit, goldmark's running time and the size of the HTML would grow with the square of the
// depth.
type shallow struct{ parser.BlockParser }

// Open implements parser.BlockParser.
func (p shallow) Open(parent ast.Node, r text.Reader, pc parser.Context) (ast.Node, parser.State) {
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		depth++
	}
	if depth > maxDepth && len(p.Trigger()) > 0 && parent.Kind() != ast.KindList { // a list must contain items
		return nil, parser.NoChildren
	}
	return p.BlockParser.Open(parent, r, pc)
}

// images parses links and images. It also stores the position of each image's destination.
type images struct {
	parser.InlineParser
	parser.CloseBlocker
}

// Parse implements parser.InlineParser.
func (p images) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	_, start := block.PeekLine()
	node := p.InlineParser.Parse(parent, block, pc)
	if image, ok := node.(*ast.Image); ok {
		_, end := block.Position()
		image.SetAttributeString(spanAttribute, span{start.Start, end.Start})
	}
	return node
}

// tables parses tables, except tables in which most cells are missing. goldmark adds missing cells to each row, so 4
// kB of "|" followed by 4 kB of short rows would create millions of cells. Cells that are not missing take at least
// one byte each.
type tables struct{ parser.ParagraphTransformer }

// Transform implements parser.ParagraphTransformer.
func (t tables) Transform(node *ast.Paragraph, r text.Reader, pc parser.Context) {
	lines, columns, size := node.Lines(), 0, 0
	for i := range lines.Len() {
		segment := lines.At(i)
		size += segment.Len()
		columns = max(columns, bytes.Count(segment.Value(r.Source()), []byte("|")))
	}
	if columns*lines.Len() <= size {
		t.ParagraphTransformer.Transform(node, r, pc)
	}
}
