package markdown

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// section is what a heading, or a line that introduces a list, says about the
// items below it.
type section int

const (
	noSection section = iota
	decisionSection
	actionSection
)

// A title is the whole line: "2. Decisions (final)", "✅ Next steps:", but not
// "Actions of the parser" or "Open decisions", which are not decided.
var (
	decisionTitle = titlePattern(`key|main|final|our|team`, `decisions?|decided|resolutions?|agreed|agreements?`)
	actionTitle   = titlePattern(`open|my|your|our|remaining|immediate|pending`,
		`action items?|actions?|next steps?|next actions?|to-?dos?|to do|tasks?|follow-?ups?`)
)

func titlePattern(adjectives, nouns string) func() *regexp.Regexp {
	return lazily(`(?i)^[^\pL\pN]*(?:[0-9]+[.)]? )?(?:(?:` + adjectives + `) )?(?:` + nouns +
		`)(?: (?:made|taken|log|list|so far))? ?(?:\([^()]*\))?[^\pL\pN]*$`)
}

// titleBytes bounds the line that is taken for a title.
const titleBytes = 80

// sectionOf returns what the title introduces.
func sectionOf(title string) section {
	switch {
	case len(title) > titleBytes:
		return noSection
	case decisionTitle().MatchString(title):
		return decisionSection
	case actionTitle().MatchString(title):
		return actionSection
	}
	return noSection
}

// introduces returns what the last line of a block says about the list that
// follows it, if a list does.
func (p prose) introduces(next ast.Node) section {
	if _, list := next.(*ast.List); !list {
		return noSection
	}
	start, end := p.line(len(p.lines) - 1)
	return sectionOf(p.mask[start:end])
}

// statement is a part of a block: a marked one ("TODO: …") or what is between.
type statement struct {
	prose
	kind  section
	owner string // of "TODO(Name):"
}

var (
	actionMark   = lazily(`^(?i)[\p{So}\x{fe0f} ]*(?:todo|action(?: item)?|fixme)(?: ?\(@?([^()]*)\))? ?: ?`)
	decisionMark = lazily(`^(?i)[\p{So}\x{fe0f} ]*(?:decision|decided|agreed|resolution) ?: ?`)
	decisionVerb = lazily(`^(?i)we(?:['’]ve| have)? (?:decided|agreed)\b`)
	ownerName    = lazily(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

// markBytes is enough for the longest mark with an owner.
const markBytes = 160

// statements cuts a block before each line that begins with a mark, and takes
// the mark off. A marked action of a paragraph ends with its line ("TODO: lines");
// of a list item, as everything else, with the next mark.
func (p prose) statements(item bool) []statement {
	var all []statement
	begin, kind := 0, noSection
	flush := func(end int) {
		if s := newStatement(p.slice(begin, max(begin, end))); s.text != "" {
			all = append(all, s)
		}
	}
	for i := range p.lines {
		start, _ := p.line(i)
		mark := markOf(p.mask[start:])
		if i > 0 && (mark != noSection || kind == actionSection && !item) {
			flush(start - 1)
			begin, kind = start, noSection
		}
		if mark != noSection {
			kind = mark
		}
	}
	flush(len(p.text))
	return all
}

// newStatement takes the mark off the prose.
func newStatement(p prose) statement {
	head := p.mask[:min(len(p.mask), markBytes)]
	if decisionVerb().MatchString(head) {
		return statement{prose: p, kind: decisionSection}
	}
	if !strings.Contains(head, ":") {
		return statement{prose: p}
	}
	if m := actionMark().FindStringSubmatchIndex(head); m != nil && m[1] < len(p.mask) {
		s := statement{prose: p.slice(m[1], len(p.text)), kind: actionSection}
		if m[2] >= 0 && ownerName().MatchString(head[m[2]:m[3]]) {
			s.owner = head[m[2]:m[3]]
		}
		return s
	}
	if m := decisionMark().FindStringIndex(head); m != nil && m[1] < len(p.mask) {
		return statement{prose: p.slice(m[1], len(p.text)), kind: decisionSection}
	}
	return statement{prose: p}
}

// markOf returns the kind of the mark that the line begins with.
func markOf(line string) section {
	head := line[:min(len(line), markBytes)]
	switch {
	case !strings.Contains(head, ":"):
		return noSection
	case actionMark().MatchString(head):
		return actionSection
	case decisionMark().MatchString(head):
		return decisionSection
	}
	return noSection
}

// salutation says whether the block greets: "Hi Ann,".
func (p prose) salutation() bool {
	return len(p.text) < titleBytes && strings.HasSuffix(p.text, ",")
}
