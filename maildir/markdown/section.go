package markdown

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark/ast"
)

// section is what a heading, or a line that introduces a list, says about the
// items below it.
type section int

const (
	noSection section = iota
	decisionSection
	actionSection
	doneSection
	questionSection
)

// A title is the whole line: "2. Decisions (final)", "✅ Next steps:", but not
// "Actions of the parser" or "Open decisions", which are not decided.
var (
	decisionTitle = titlePattern(`key|main|final|our|team|unsere`, `decisions?|decided|resolutions?|agreed|agreements?|`+
		`entscheidung(?:en)?|beschl(?:uss|üsse)|beschlossen|décisions?|décidé|decisi(?:ón|ones)|acuerdos?|決定(?:事項)?|决定|решени[ея]`)
	actionTitle = titlePattern(`open|my|your|our|remaining|immediate|pending|offene`,
		`action items?|actions?|next steps?|next actions?|to-?dos?|to do|tasks?|follow-?ups?|remaining|left to do|`+
			`nächste schritte|aufgaben|prochaines étapes|à faire|próximos pasos|tareas|pendientes|やること|対応事項|待办(?:事项)?|行动项|下一步|задачи`)
	doneTitle = titlePattern(`already|all|what is|what['’]s`,
		`done|completed|finished|erledigt|fertig|terminé|fait|hecho|完了|已?完成(?:事项)?|сделано`)
	questionTitle = titlePattern(`open|unresolved|remaining|my|our|offene`, `questions?|fragen|preguntas|質問|(?:未决|待定)?问题|вопросы`)
)

func titlePattern(adjectives, nouns string) func() *regexp.Regexp {
	return lazily(`(?i)^[^\pL\pN]*(?:[0-9]+[.)]? )?(?:(?:` + adjectives + `) )?(?:` + nouns +
		`)(?: (?:made|taken|log|list|so far|with [\pL\pN]+))? ?(?:\([^()]*\))?[^\pL\pN]*$`)
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
	case doneTitle().MatchString(title):
		return doneSection
	case questionTitle().MatchString(title):
		return questionSection
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

// marks are the words that a statement begins with, before a colon, in lower case.
var marks = map[string]section{
	"todo": actionSection, "action": actionSection, "action item": actionSection, "fixme": actionSection, "aufgabe": actionSection,
	"à faire": actionSection, "tarea": actionSection, "pendiente": actionSection, "宿題": actionSection, "待办": actionSection,
	"待办事项": actionSection, "行动项": actionSection, "задача": actionSection,

	"done": doneSection, "completed": doneSection, "finished": doneSection, "erledigt": doneSection, "terminé": doneSection,
	"hecho": doneSection, "完了": doneSection, "完成": doneSection, "已完成": doneSection, "сделано": doneSection,

	"decision": decisionSection, "decided": decisionSection, "agreed": decisionSection, "resolution": decisionSection,
	"entscheidung": decisionSection, "beschlossen": decisionSection, "décision": decisionSection, "décidé": decisionSection,
	"decisión": decisionSection, "decidido": decisionSection, "acordado": decisionSection, "決定": decisionSection, "决定": decisionSection,
	"решение": decisionSection, "решили": decisionSection,
}

var (
	decisionVerb = lazily(`^(?i)we(?:['’]ve| have)? (?:decided|agreed)\b`)
	undecided    = lazily(`^(?i)(?:[^:]{1,60}: )?(?:(?:we(?:['’]ve| have)? (?:decided|agreed) )?(?:none|nothing)|` +
		`n/a|tb[acd]|to be [a-z]+|pending|open|undecided|not decided|offen|keine|aucune|ninguna|なし|未定)(?: yet| so far| for now| here)?[.!。]*$|` +
		`^(?i)(?:tb[acd]\b|(?:to be decided|undecided|not decided(?: yet)?|pending|未定) ?[:：–—-])`)
	ownerName = lazily(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

const (
	markBytes = 160 // enough for the longest mark with an owner
	wordBytes = 20  // enough for the longest of marks, with a blank and what follows
)

// mark is the beginning of a statement that says what it is: "TODO(Ann): ".
type mark struct {
	kind  section
	owner string
	end   int // where the statement's text begins
}

// markOf finds the mark that a line begins with, behind any symbols ("✅ Done: "). No mark: the zero
// value.
func markOf(line string) (m mark) {
	head := line[:min(len(line), markBytes)]
	rest := strings.TrimLeftFunc(head, func(r rune) bool { return r == ' ' || r == '\ufe0f' || unicode.Is(unicode.So, r) })
	end := strings.IndexFunc(rest[:min(len(rest), wordBytes)], func(r rune) bool { return r == ':' || r == '：' || r == '(' })
	if end < 0 {
		return mark{}
	}
	m.kind = marks[strings.ToLower(strings.TrimSuffix(rest[:end], " "))]
	rest = rest[end:]
	if bracket := strings.IndexAny(rest[1:], "()"); m.kind == actionSection && rest[0] == '(' && bracket >= 0 && rest[1+bracket] == ')' {
		if owner := strings.TrimPrefix(rest[1:1+bracket], "@"); ownerName().MatchString(owner) {
			m.owner = owner
		}
		rest = strings.TrimPrefix(rest[bracket+2:], " ")
	}
	text, colon := strings.CutPrefix(rest, ":")
	if !colon {
		text, colon = strings.CutPrefix(rest, "：")
	}
	if m.kind == noSection || !colon {
		return mark{}
	}
	m.end = len(head) - len(strings.TrimPrefix(text, " "))
	return m
}

// What statements are of.
const (
	ofParagraph = false
	ofItem      = true
)

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
		mark := markOf(p.mask[start:]).kind
		if i > 0 && (mark != noSection || (kind == actionSection || kind == doneSection) && !item) {
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
	if p.tellsDecision() {
		return statement{prose: p, kind: decisionSection}
	}
	m := markOf(p.mask)
	if m.end == len(p.mask) { // nothing but a mark
		return statement{prose: p}
	}
	return statement{prose: p.slice(m.end, len(p.text)), kind: m.kind, owner: m.owner}
}

// salutation says whether the block greets: "Hi Ann,".
func (p prose) salutation() bool {
	return len(p.text) < titleBytes && strings.HasSuffix(p.text, ",")
}

var (
	greetingPattern = lazily(`^(?i)(?:thanks?|thank you|thx|good (?:morning|evening|question|point|idea|catch|job)|morning|hi|hello|hey|hm+|` +
		`danke|hallo|guten (?:morgen|tag)|merci|bonjour|salut|gracias|hola|ありがとうございます|お疲れ様です|谢谢|спасибо|привет)` +
		`(?:,? [\pL@]+){0,3}[,.!…。！ ]*$`)
	nodPattern = lazily(`^(?i)(?:ok(?:ay)?|ack|lgtm|\+1|(?:sounds|looks) (?:good|great)|great|perfect|cool|nice|got it|will do|` +
		`sure|yes|no|yep|nope|agreed|noted|understood|ja|nein|oui|non|sí|はい|了解です|好的|да|нет)(?: to me)?(?:,? (?:thanks?|thank you))?[,.!…。！ ]*$`)
)

// greeting says whether the sentence greets or thanks: "Thanks, Ann!"
func (p prose) greeting() bool {
	return len(p.text) < titleBytes && greetingPattern().MatchString(p.mask)
}

// leastPoint is how many bytes a single word must have to say something by itself: a sentence of
// Chinese or Japanese is one.
const leastPoint = 20

// empty says whether the sentence is no key point: a question, a greeting, a nod, one word
// ("Looking."), or what introduces something else ("As follows:").
func (p prose) empty() bool {
	oneWord := len(p.text) < leastPoint && !strings.Contains(p.text, " ")
	return oneWord || p.question() || p.greeting() || nodPattern().MatchString(p.mask) || strings.HasSuffix(p.mask, ":")
}

// tellsDecision says whether the prose begins with "We decided" or "We agreed".
func (p prose) tellsDecision() bool {
	return p.mask != "" && (p.mask[0] == 'W' || p.mask[0] == 'w') && decisionVerb().MatchString(p.mask)
}
