package markdown

import (
	"context"
	"time"
)

// Outline is what the structure of one body says, each list in document order.
// Empty lists are nil.
type Outline struct {
	// Points are the key points: the first sentence of the first paragraph that says something
	// ("Hi Ann,", "Thanks!", "LGTM", questions and "As follows:" do not), and the top-level list
	// items that are neither actions, decisions nor questions.
	Points []string

	// Decisions are top-level list items and paragraphs under a heading such as Decisions or
	// Resolution, items of a list that such a line introduces ("Agreed:"), paragraphs and items
	// that begin with "Decision:", "Decided:", "Agreed:" or "Resolution:" (the word is taken off),
	// and those and sentences that begin with "We decided" or "We agreed". Questions behind them are left
	// out. What only asks, says "none", or begins with "TBD", is not decided.
	Decisions []string

	// Actions are task list items at any depth, items and lines that begin with
	// "TODO:", "ACTION:" or "FIXME:" in any case (the word is taken off),
	// top-level items under a heading such as Action items or Next steps, items
	// of a list that such a line introduces, and items that begin with "@Name". What begins with
	// "DONE:", or stands under a heading such as Done, is one that is done.
	Actions []Action

	// Questions are the sentences that end in a question mark, and top-level items under a heading
	// such as Open questions. Quoted are those inside of quotes.
	Questions, Quoted []string

	// Code are the code spans and the names of files, functions, issues and commits in the text.
	Code []string

	// Says: there is more than greetings, questions and task items.
	Says bool

	// Truncated: the body was over Limit, or the deadline or the context ended
	// the reading; only the first part was read.
	Truncated bool
}

// Action is one action item. Done is a ticked task box, or what says so in words. Owner is the
// first name mentioned in it, without the "@", or the name in "TODO(Name):", else "".
type Action struct {
	Text  string
	Done  bool
	Owner string
}

// Parse reads the outline of a body. It never fails: of a body over Limit, or
// when ctx ends or Deadline passes, it returns what it has read, with Truncated
// set. A Short body has no such deadline. Markup that costs too much to resolve
// counts as plain text, which is no truncation.
//
// See docs/tools.md, "Summaries".
func (p *Parser) Parse(ctx context.Context, body string) Outline {
	return p.outline(ctx, body, deadline(body))
}

func deadline(body string) time.Duration {
	if len(body) <= Short {
		return shortDeadline
	}
	return Deadline
}

// outline is Parser.Parse with another deadline. A third of it is left for taking the
// outline from as much of the tree as there is.
func (p *Parser) outline(ctx context.Context, body string, deadline time.Duration) Outline {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	text, cut := clipBody(body, Limit)
	source := []byte(normalize(text))
	doc, whole := p.tree(ctx, source, deadline*2/3)
	c := newCollector(ctx, source)
	if doc != nil {
		c.document(doc)
	}
	c.out.Truncated = cut || !whole || ctx.Err() != nil
	return c.out
}
