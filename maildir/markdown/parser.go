package markdown

import (
	"context"
	"time"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Parser reads bodies, one at a time: making goldmark's parsers costs as much as parsing a short
// body, so whoever reads many of them keeps one.
type Parser struct {
	goldmark parser.Parser
	guards   []guard
}

// guard is a parser that counts for one body.
type guard interface {
	beginBody(ctx context.Context)
}

// parseTree is Parser.tree of a parser that serves one body.
func parseTree(ctx context.Context, source []byte, deadline time.Duration) (doc ast.Node, whole bool) {
	return NewParser().tree(ctx, source, deadline)
}

// tree returns goldmark's tree of the source and whether it is the whole.
// It is of the first part, if ctx ends or the deadline passes meanwhile, and nil
// if goldmark panicked.
func (p *Parser) tree(ctx context.Context, source []byte, deadline time.Duration) (doc ast.Node, whole bool) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	// A body comes from anybody, and a panic in foreign code must not stop the
	// server. Our own code runs outside this recover, so that tests see it.
	defer func() {
		if recover() != nil {
			doc, whole = nil, false
		}
	}()
	reader := &lineReader{Reader: text.NewReader(source), ctx: ctx}
	for _, g := range p.guards {
		g.beginBody(ctx)
	}
	doc = p.goldmark.Parse(reader)
	return doc, ctx.Err() == nil
}

// NewParser assembles GitHub-Flavored Markdown from goldmark's parsers, the
// costly ones guarded.
//
// Left out: links of bare addresses, which an outline does not need (bare.go has them), heading ids,
// and the table extension's transformer of "\|" in code spans, which is quadratic (prose.go does it).
func NewParser() *Parser { return newParser() }

// newParser is NewParser with further parsers of what stands within a block.
func newParser(more ...util.PrioritizedValue) *Parser {
	delimiters, links, spans := &budget{}, newBrackets(), &codeSpans{InlineParser: parser.NewCodeSpanParser()}
	return &Parser{guards: []guard{delimiters, links.budget, spans}, goldmark: parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(nested{parser.NewListParser()}, 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(nested{parser.NewBlockquoteParser()}, 800),
			util.Prioritized(parser.NewHTMLBlockParser(), 900),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(append(more,
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(spans, 100),
			util.Prioritized(links, 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(tags{}, 400),
			util.Prioritized(&emphasis{InlineParser: parser.NewEmphasisParser(), budget: delimiters}, 500),
			util.Prioritized(&emphasis{InlineParser: extension.NewStrikethroughParser(), budget: delimiters}, 500),
		)...),
		parser.WithParagraphTransformers(
			util.Prioritized(definitions{}, 100),
			util.Prioritized(tables{extension.NewTableParagraphTransformer()}, 200),
		),
	)}
}
