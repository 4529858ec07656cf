package query

import (
	"cmp"
	"strings"
	"unicode"

	"mailtree/maildir/lazy"
)

// kind is the kind of a token.
type kind int

const (
	end    kind = iota
	word        // a word, a phrase, or a filter's value
	filter      // a filter's key with its value
	and         // AND
	or          // OR, |, ||
	not         // NOT, or the - before a word
	open        // (
	closed      // )
)

// token is a piece of the query text.
type token struct {
	kind   kind
	text   string // without quotes
	key    Key    // a filter's key; inSubject or inBody for a word in one column
	prefix bool
}

// lexer splits text into tokens.
type lexer struct {
	rest     string
	depth    int  // number of open groups
	unclosed bool // a closing quote is missing

	mistaken, meant string // the first key from meantKeys in the text, and the key to use instead
	wild            string // the first word with a wildcard
	foreign         string // the first word that is an operator or a filter in other search engines
	lower           string // the first operator that is not in capitals
	unspaced        string // the first word in a script without spaces
}

// meantKeys maps filters from other search engines to mailtree's equivalent filters.
var meantKeys = map[string]string{
	"priority": "importance:", "prio": "importance:", "urgency": "importance:", "title": "subject:", "topic": "subject:",
	"text": "body:", "content": "body:", "author": "from:", "by": "from:", "agent": "from:", "recipient": "to:",
	"in": "thread:, subject: or body:", "threadid": "thread:", "thread-id": "thread:",
	"newer": "after:", "date": "after:", "created": "after:", "older": "before:",
}

// typographic replaces typographic quotation marks, which some keyboards and programs produce, with ASCII ones.
var typographic = strings.NewReplacer("\u201c", `"`, "\u201d", `"`, "\u201e", `"`, "\u201f", `"`, "\u00ab", `"`, "\u00bb", `"`)

func tokens(text string) (all []token, l *lexer) {
	if !strings.Contains(text, `"`) {
		text = typographic.Replace(text)
	}
	l = &lexer{rest: strings.ReplaceAll(text, "\x00", " ")}
	for {
		t := l.next()
		if t.kind == end {
			return all, l
		}
		all = append(all, t)
	}
}

func (l *lexer) next() token {
	l.rest = strings.TrimLeftFunc(l.rest, unicode.IsSpace)
	switch {
	case l.rest == "":
		return token{kind: end}
	case l.rest[0] == '(':
		l.rest = l.rest[1:]
		l.depth++
		return token{kind: open, text: "("}
	case l.rest[0] == ')':
		l.rest = l.rest[1:]
		l.depth--
		return token{kind: closed, text: ")"}
	case l.excludes():
		l.rest = l.rest[1:]
		return token{kind: not}
	case l.rest[0] == '"':
		return l.phrase(token{kind: word})
	}
	return l.word()
}

// excludes reports whether the text continues with -word, -"phrase" or -(group), or with a "!" in place of the "-".
// The lexer treats --flag, != and a single - as words.
func (l *lexer) excludes() bool {
	after, ok := strings.CutPrefix(l.rest, "-")
	if !ok {
		after, ok = strings.CutPrefix(l.rest, "!")
	}
	return ok && after != "" && strings.IndexFunc(after, func(r rune) bool { return searched(r) || r == '"' || r == '(' }) == 0
}

// phrase reads up to the closing quote. Inside a phrase, two quotes in a row mean one quote.
func (l *lexer) phrase(t token) token {
	var b strings.Builder
	l.rest = l.rest[1:]
	for {
		part, rest, ok := strings.Cut(l.rest, `"`)
		b.WriteString(part)
		l.rest = rest
		l.unclosed = l.unclosed || !ok
		if !strings.HasPrefix(rest, `"`) {
			break
		}
		b.WriteByte('"')
		l.rest = rest[1:]
	}
	t.text = b.String()
	if rest := strings.TrimLeft(l.rest, "*"); len(rest) < len(l.rest) {
		l.rest, t.prefix = rest, true
	}
	return t
}

// word reads a word, or a key with its value.
func (l *lexer) word() token {
	l.joinColon()
	text := l.rest[:l.wordEnd()]
	switch strings.ToUpper(text) {
	case text:
	case "AND", "OR", "NOT":
		l.lower = cmp.Or(l.lower, text)
	}
	if strings.ContainsFunc(text, unspaced) {
		l.unspaced = cmp.Or(l.unspaced, text)
	}
	if l.wild == "" && hasWildcard(text) {
		l.wild = text
	}
	if l.foreign == "" && isForeign(text) {
		l.foreign = text
	}
	name, value, colon := strings.Cut(text, ":")
	key := keys[strings.ToLower(name)]
	if meant := meantKeys[strings.ToLower(name)]; colon && meant != "" && l.mistaken == "" {
		l.mistaken, l.meant = name+":", meant
	}
	if !colon || key == "" {
		l.rest = l.rest[len(text):]
		switch text {
		case "AND":
			return token{kind: and, text: text}
		case "OR", "|", "||":
			return token{kind: or, text: text}
		case "NOT":
			return token{kind: not, text: text}
		}
		return ended(token{kind: word}, text)
	}
	t := token{kind: filter, key: key}
	if key == inSubject || key == inBody {
		t.kind = word
	}
	l.rest = l.rest[len(name)+1:]
	if value == "" { // the value follows after a space, or in quotes
		l.rest = strings.TrimLeftFunc(l.rest, unicode.IsSpace)
		if strings.HasPrefix(l.rest, `"`) {
			return l.phrase(t)
		}
		if value = l.rest[:l.wordEnd()]; !isValue(value) {
			return token{kind: filter, key: key}
		}
	}
	if t.kind == filter && value[0] == '(' {
		group, _, _ := strings.Cut(l.rest, ")")
		value = l.rest[:min(len(group)+1, len(l.rest))]
	}
	l.rest = l.rest[len(value):]
	return ended(t, value)
}

// joinColon removes the spaces between a filter's key and the colon, as in "subject : plan".
func (l *lexer) joinColon() {
	name := l.rest[:l.wordEnd()]
	key := keys[strings.ToLower(name)]
	value, ok := strings.CutPrefix(strings.TrimLeftFunc(l.rest[len(name):], unicode.IsSpace), ":")
	if ok && key != "" && key != Is && key != Has {
		l.rest = name + ":" + value
	}
}

// unspaced reports whether a character belongs to a script that has no spaces between words, or that attaches
// particles to words.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Hangul)
}

// hasWildcard reports whether a word contains a wildcard from other search engines that has no meaning here: a * before
// a letter, or a ? between two letters.
func hasWildcard(word string) bool {
	all := []rune(word)
	for i, r := range all[:max(0, len(all)-1)] {
		if searched(all[i+1]) && (r == '*' || r == '?' && i > 0 && searched(all[i-1])) {
			return true
		}
	}
	return false
}

// foreign matches operators and filters from other search engines that are plain words here: NEAR(a b), NEAR/5, plan^2,
// foo:bar. It does not match a URL or a name with two colons.
var foreign = lazy.Regexp(`^(NEAR(/\d+)?(\(.*)?|[^\s:^]+\^[\d.]+|[a-z_]+:[^\s:/].*)$`)

func isForeign(word string) bool {
	name, _, colon := strings.Cut(word, ":")
	return foreign().MatchString(word) && (!colon || keys[name] == "" && meantKeys[name] == "")
}

// ended returns t with the given text. If the text ends in *, ended removes the * and makes t a prefix.
func ended(t token, text string) token {
	t.text = strings.TrimRight(text, "*")
	t.prefix = len(t.text) < len(text)
	return t
}

// isValue reports whether a word can be the value of the key before it.
func isValue(word string) bool {
	name, _, colon := strings.Cut(word, ":")
	return word != "" && word != "AND" && word != "OR" && word != "NOT" && (!colon || keys[strings.ToLower(name)] == "")
}

// wordEnd returns the offset at which the word at the beginning of rest ends. The word ends at a space, a quote, or the
// parenthesis that closes a group. f(x) is one word.
func (l *lexer) wordEnd() int {
	opened := 0
	for i, r := range l.rest {
		switch {
		case unicode.IsSpace(r), r == '"', r == ')' && opened == 0 && l.depth > 0:
			return i
		case r == '(':
			opened++
		case r == ')':
			opened--
		}
	}
	return len(l.rest)
}

// searched reports whether r is part of a word in the index: a letter, a digit, or a private-use character.
func searched(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.Co) }
