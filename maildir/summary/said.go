package summary

import (
	"slices"
	"strings"

	"mailtree/maildir/lazy"
	"mailtree/maildir/markdown"
)

// DecisionMarks are the marks that begin a decision, as in "Decision: we keep the index".
var DecisionMarks = []string{"decision", "decided", "agreed", "resolution"}

// Decisions returns the decisions in a body, in the order of the text. A summary of the body's thread lists the same
// decisions. A body that contains none of the DecisionMarks has no decisions.
func Decisions(body string) []string { return reading(body[:min(len(body), maxBody)]).decisions }

// said contains the statements in one body. Each list is in the order of the text.
type said struct {
	points, decisions, questions, code []string
	actions                            []action
}

// action is a task. Its owner is the name in "TODO(Name):" or, if there is none, the first name after an "@" in the
// text. If there is no such name either, the owner is "".
type action struct {
	text, owner string
	done        bool
}

var (
	taskBox = lazy.Regexp(`^\[([ xX])\][ \t]+(.+)$`)
	marked  = lazy.Regexp(`^(?i)(todo|action|action item|fixme|done|` + strings.Join(DecisionMarks, "|") + `)` +
		`(?:\(@?([\w.-]+)\))?:[ \t]*(.+)$`)
	mention  = lazy.Regexp(`(?:^|[ (,;:])@([A-Za-z0-9](?:[\w.-]*\w)?)`)
	codeSpan = lazy.Regexp("`([^`]{1,80})`")
	// A sentence ends with punctuation followed by white space, or with Chinese or Japanese punctuation.
	sentence = lazy.Regexp(`.*?(?:[.!?]+["'”’»)\]]*(?:\s+|$)|[。！？]+|$)`)
)

// reading returns the statements in a body. It keeps only the last entries of each list, which newest returns.
func reading(body string) *said {
	s := &said{}
	pointed := false // the current paragraph's key point has been found
	for _, st := range statements(body) {
		for _, span := range codeSpan().FindAllStringSubmatch(st.text, -1) {
			s.code = append(s.code, span[1])
		}
		if m := taskBox().FindStringSubmatch(st.text); m != nil && st.kind == item {
			s.act(m[2], "", m[1] != " ")
			s.ask(m[2])
			continue
		}
		if m := marked().FindStringSubmatch(st.text); m != nil {
			s.mark(strings.ToLower(m[1]), m[2], m[3])
			s.ask(m[3])
			continue
		}
		point := s.ask(st.text)
		switch {
		case st.kind == item && strings.HasPrefix(st.text, "@") && mention().MatchString(st.text):
			s.act(st.text, "", false)
		case st.kind == item && st.top && point != "":
			s.points = append(s.points, markdown.Line(st.text))
		case st.kind == paragraph && point != "" && !pointed:
			pointed = true
			s.points = append(s.points, markdown.Line(point))
		}
	}
	for _, l := range []*[]string{&s.points, &s.decisions, &s.questions, &s.code} {
		*l = newest(*l)
	}
	s.actions = newest(s.actions)
	return s
}

// mark adds a statement that begins with a mark. The argument mark is in lower case.
func (s *said) mark(mark, owner, text string) {
	switch mark {
	case "todo", "action", "action item", "fixme":
		s.act(text, owner, false)
	case "done":
		s.act(text, owner, true)
	default:
		s.decisions = append(s.decisions, markdown.Line(text))
	}
}

func (s *said) act(text, owner string, done bool) {
	if m := mention().FindStringSubmatch(text); m != nil && owner == "" {
		owner = m[1]
	}
	s.actions = append(s.actions, action{text: markdown.Line(text), owner: owner, done: done})
}

// ask adds the sentences that end with a question mark. It returns the first other sentence that can be a key point, or
// "" if there is none.
func (s *said) ask(text string) (point string) {
	for _, one := range sentence().FindAllString(text, -1) {
		one = strings.TrimSpace(one)
		end := strings.TrimRight(one, `!！"'”’»)]`)
		switch {
		case strings.HasSuffix(end, "?") || strings.HasSuffix(end, "？"):
			s.questions = append(s.questions, markdown.Line(one))
		case point == "" && tells(one):
			point = one
		}
	}
	return point
}

// newest returns the last maxItems entries, so that a thread with long lists takes little memory.
func newest[T any](all []T) []T { return slices.Clone(all[max(0, len(all)-maxItems):]) }

// tells reports whether text can be a key point. It must have at least three words, or 20 bytes for Chinese, and must
// not introduce other text ("As follows:", "Hi Ann,").
func tells(text string) bool {
	long := len(strings.Fields(text)) >= 3 || len(text) >= 20
	return long && !strings.HasSuffix(text, ":") && !strings.HasSuffix(text, ",")
}
