package markdown

import (
	"context"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	// A budget's steps are visits of a node or a byte, some nanoseconds each.
	// blockSteps are 1,000 delimiters or so in one paragraph, totalSteps about
	// 20 ms: hundreds of times what a body written by hand takes.
	blockSteps = 1 << 19
	totalSteps = 1 << 22

	// bracketSteps is an opening bracket: goldmark makes three objects for it.
	bracketSteps = 32

	// maxOpenRuns is how many unclosed backtick runs a block may have before the
	// rest of its backticks count as text: each costs a pass over the block.
	maxOpenRuns = 16
)

// budget counts the steps of inline parsers, by block and in all.
type budget struct {
	ctx   context.Context
	block ast.Node // that spent, nodes and open belong to
	spent int
	nodes int // inline nodes that the guarded parsers made in the block
	open  int // brackets of the block that may still be closed
	left  int
}

func (b *budget) beginBody(ctx context.Context) { *b = budget{ctx: ctx, left: totalSteps} }

// enter says whether the block may spend more.
func (b *budget) enter(block ast.Node) bool {
	if b.block != block {
		b.block, b.spent, b.nodes, b.open = block, 0, 0, 0
	}
	return b.spent < blockSteps && b.left > 0 && b.ctx.Err() == nil
}

func (b *budget) charge(steps int) {
	b.spent += steps
	b.left -= steps
}

// emphasis guards the parsers of "*", "_" and "~". The k-th delimiter of a block
// may be compared with all k before it.
type emphasis struct {
	parser.InlineParser
	budget *budget
}

// Parse implements parser.InlineParser.
func (e *emphasis) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if !e.budget.enter(parent) {
		return nil
	}
	node := e.InlineParser.Parse(parent, block, pc)
	if node != nil {
		e.budget.nodes++
		e.budget.charge(e.budget.nodes)
	}
	return node
}

// brackets guards the parser of links and images. A closing bracket walks the
// nodes before it, looks for its label's line, and reads the destination, which
// may run to the end of the block.
type brackets struct {
	parser.InlineParser
	parser.CloseBlocker
	budget *budget
}

func newBrackets() *brackets {
	links := parser.NewLinkParser()
	return &brackets{links, links.(parser.CloseBlocker), &budget{}}
}

// Parse implements parser.InlineParser.
func (b *brackets) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if !b.budget.enter(parent) {
		return nil
	}
	line, start := block.PeekLine()
	node := b.InlineParser.Parse(parent, block, pc)
	if node != nil {
		b.budget.nodes++
	}
	if line[0] != ']' {
		b.budget.open++
		b.budget.charge(bracketSteps)
		return node
	}
	if b.budget.open > 0 {
		b.budget.open--
		// Every sibling counts, also those that other parsers made.
		b.budget.charge(parent.ChildCount() + b.budget.nodes + parent.Lines().Len())
	}
	switch {
	case node != nil:
		_, end := block.Position()
		b.budget.charge(end.Start - start.Start)
		if node.Kind() == ast.KindImage {
			node.SetAttributeString(spanAttribute, span{start.Start, end.Start})
		}
	case len(line) > 1 && (line[1] == '(' || line[1] == '['):
		b.budget.charge(rest(parent, start))
	}
	return node
}

// codeSpans guards the parser of code spans. A run of n backticks that is not
// closed is looked for up to the end of the block.
type codeSpans struct {
	parser.InlineParser
	ctx   context.Context
	block ast.Node
	open  int // runs that have no closing run in block, each of another length
}

func (c *codeSpans) beginBody(ctx context.Context) { c.ctx, c.block, c.open = ctx, nil, 0 }

// Parse implements parser.InlineParser.
func (c *codeSpans) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	if c.block != parent {
		c.block, c.open = parent, 0
	}
	line, segment := block.PeekLine()
	n := util.TrimLeftLength(line, []byte("`"))
	if c.open >= maxOpenRuns || c.ctx.Err() != nil {
		block.Advance(n)
		return ast.NewTextSegment(segment.WithStop(segment.Start + n))
	}
	node := c.InlineParser.Parse(parent, block, pc)
	if _, closed := node.(*ast.CodeSpan); !closed {
		c.open++
	}
	return node
}

// tags parses inline HTML in place of goldmark's regular expressions, which read
// 100 ns a rune and look ahead without end. A tag or comment is on one line and
// has no "<" inside: the search for its end stops at the next "<", so that all
// searches together read a line once.
type tags struct{}

// Trigger implements parser.InlineParser.
func (tags) Trigger() []byte { return []byte{'<'} }

// Parse implements parser.InlineParser.
func (tags) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, segment := block.PeekLine()
	if !beginsTag(line) {
		return nil
	}
	for i := 1; i < len(line) && line[i] != '<'; i++ {
		if line[i] == '>' {
			node := ast.NewRawHTML()
			node.Segments.Append(segment.WithStop(segment.Start + i + 1))
			block.Advance(i + 1)
			return node
		}
	}
	return nil
}

// beginsTag says whether the line begins like "<a", "</a", "<!" or "<?".
func beginsTag(line []byte) bool {
	if len(line) < 3 {
		return false
	}
	c := line[1]
	if c == '/' {
		c = line[2]
	}
	return c == '!' || c == '?' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// rest is the number of bytes from the position to the end of the block.
func rest(block ast.Node, from text.Segment) int {
	lines := block.Lines()
	if lines.Len() == 0 {
		return 0
	}
	return lines.At(lines.Len()-1).Stop - from.Start
}
