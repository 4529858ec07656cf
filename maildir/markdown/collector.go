package markdown

import (
	"context"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

// collector walks the tree of a body once and fills an Outline.
type collector struct {
	ctx    context.Context
	source []byte
	out    Outline
	titles []title // headings that the block at hand is under, outermost first
	opened bool    // the first paragraph has been seen
}

// title is a heading with a meaning for what is below it.
type title struct {
	level int
	about section
}

// place says where a block stands.
type place struct {
	quoted bool
	depth  int // of list items around it
}

func newCollector(ctx context.Context, source []byte) *collector {
	return &collector{ctx: ctx, source: source}
}

func (c *collector) document(doc ast.Node) { c.blocks(doc.FirstChild(), place{}, noSection) }

// blocks reads a block and its following siblings. lead is what the text before
// the first of them said about it.
func (c *collector) blocks(n ast.Node, at place, lead section) {
	for ; n != nil && c.ctx.Err() == nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Paragraph, *ast.TextBlock:
			p := readProse(c.source, n)
			lead = p.introduces(n.NextSibling())
			c.paragraph(p, at, lead)
			continue
		case *ast.List:
			c.list(n, at, lead)
		case *ast.Heading:
			c.heading(n, at)
		case *ast.Blockquote:
			c.blocks(n.FirstChild(), place{quoted: true, depth: at.depth}, noSection)
		case *extast.Table:
			c.table(n, at)
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			c.out.Says = c.out.Says || !at.quoted
		}
		lead = noSection
	}
}

// heading takes marked statements and questions from a heading; a top-level one opens a section.
func (c *collector) heading(n *ast.Heading, at place) {
	p := readProse(c.source, n)
	c.scan(p, at)
	if at.quoted || p.text == "" {
		return
	}
	for _, s := range p.statements(ofItem) {
		c.marked(s)
	}
	if at.depth > 0 {
		return
	}
	for len(c.titles) > 0 && c.titles[len(c.titles)-1].level >= n.Level {
		c.titles = c.titles[:len(c.titles)-1]
	}
	c.titles = append(c.titles, title{n.Level, sectionOf(p.mask)})
}

// section returns what the nearest heading with a meaning says.
func (c *collector) section() section {
	for i := len(c.titles) - 1; i >= 0; i-- {
		if c.titles[i].about != noSection {
			return c.titles[i].about
		}
	}
	return noSection
}

// paragraph reads a paragraph that is not the text of a list item. lead is what
// it introduces.
func (c *collector) paragraph(p prose, at place, lead section) {
	c.scan(p, at)
	if at.quoted || p.text == "" {
		return
	}
	first := !c.opened && at.depth == 0 && !p.salutation()
	for i, s := range p.statements(ofParagraph) {
		if first && i == 0 {
			c.opening(s, lead == noSection && c.section() != decisionSection && (!s.addressed() || p.salutation()))
		}
		switch {
		case s.kind != noSection:
			c.marked(s)
		case s.addressed() && !p.salutation():
			c.act(s, isOpen)
			continue
		case i > 0 || at.depth > 0 || strings.HasSuffix(p.text, ":"):
		case c.section() == decisionSection:
			c.decide(s)
		default:
			c.decided(s)
		}
	}
}

// decided takes the sentences within a paragraph that tell of a decision: "No rollback. We agreed
// to wait."
func (c *collector) decided(s statement) {
	for _, one := range s.sentences() {
		if one.tellsDecision() {
			c.decide(statement{prose: one})
		}
	}
}

// opening takes the first sentence that says something for a key point, unless it is to be
// something else.
func (c *collector) opening(s statement, point bool) {
	if !point || s.kind != noSection {
		c.opened = true
		return
	}
	for _, one := range s.sentences() {
		if !one.empty() && !one.tellsDecision() {
			c.opened = true
			c.point(one)
			return
		}
	}
}

// list reads a list. Its items are what the line before it says, else, in a
// top-level list, what the heading says.
func (c *collector) list(n *ast.List, at place, lead section) {
	about := lead
	if about == noSection && at.depth == 0 {
		about = c.section()
	}
	for item := n.FirstChild(); item != nil && c.ctx.Err() == nil; item = item.NextSibling() {
		first, inner := item.FirstChild(), place{quoted: at.quoted, depth: at.depth + 1}
		switch first.(type) {
		case *ast.TextBlock, *ast.Paragraph:
			p := readProse(c.source, first)
			lead := p.introduces(first.NextSibling())
			c.item(p, at, about, lead)
			c.blocks(first.NextSibling(), inner, lead)
		default:
			c.blocks(first, inner, noSection)
		}
	}
}

// item reads the text of a list item. What the item says of itself goes before
// what is said about its list; an item that introduces a list is only its title.
func (c *collector) item(p prose, at place, about, lead section) {
	c.scan(p, at)
	if at.quoted || p.text == "" {
		return
	}
	for i, s := range p.statements(ofItem) {
		switch {
		case i == 0 && p.task:
			c.act(s, p.done)
		case s.kind != noSection:
			c.marked(s)
		case lead != noSection:
		case about == actionSection || about == doneSection || about == noSection && s.addressed():
			c.act(s, about == doneSection)
		case about == decisionSection:
			c.decide(s)
		case s.asks():
		case about == questionSection:
			c.out.Questions = append(c.out.Questions, clip(s.text, textRunes))
		case at.depth == 0 && !s.greeting():
			c.point(s.prose)
		}
	}
}

// table takes the questions from a table's cells.
func (c *collector) table(n *extast.Table, at place) {
	for row := n.FirstChild(); row != nil && c.ctx.Err() == nil; row = row.NextSibling() {
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			if cell.HasChildren() {
				c.scan(readProse(c.source, cell), at)
			}
		}
	}
}

// scan takes the questions and the code from any text, and tells whether it says anything else.
func (c *collector) scan(p prose, at place) {
	if at.quoted && !strings.ContainsAny(p.mask, "?？") {
		return
	}
	for _, part := range p.statements(ofItem) {
		for _, s := range part.sentences() {
			switch {
			case at.quoted && s.question():
				c.out.Quoted = append(c.out.Quoted, clip(s.text, textRunes))
			case at.quoted:
			case s.question():
				c.out.Questions = append(c.out.Questions, clip(s.text, textRunes))
			case !p.task && !p.salutation() && !s.greeting():
				c.out.Says = true
			}
		}
	}
	if !at.quoted {
		c.out.Code = append(c.out.Code, p.references()...)
	}
}

func (c *collector) marked(s statement) {
	switch s.kind {
	case actionSection:
		c.act(s, isOpen)
	case doneSection:
		c.act(s, isDone)
	case decisionSection:
		c.decide(s)
	}
}

// How an action stands where nothing else says so.
const (
	isOpen = false
	isDone = true
)

func (c *collector) act(s statement, done bool) {
	owner := s.owner
	if owner == "" {
		owner = s.mention()
	}
	c.out.Actions = append(c.out.Actions, Action{Text: clip(s.text, textRunes), Done: done, Owner: owner})
}

// decide takes a decision without the questions that follow it ("Any objections?"), unless the
// statement only asks for one or says that there is none.
func (c *collector) decide(s statement) {
	told := s.beforeQuestions()
	if told.text == "" || undecided().MatchString(told.mask) {
		return
	}
	c.out.Decisions = append(c.out.Decisions, clip(told.text, textRunes))
}

func (c *collector) point(p prose) {
	c.out.Points = append(c.out.Points, clip(p.text, textRunes))
}
