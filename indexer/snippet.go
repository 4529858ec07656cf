package indexer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Marking the found words of a hit here, and not in FTS5, saves its second reading of every body of a page: 25 µs a hit,
// three quarters of a search. It is done for queries of plain words, prefixes and phrases of ASCII letters and digits, which
// most are; FTS5 marks the others, and the texts in which only its folding of accents finds the word.

// term is a word or phrase that a query asks for, in lower case.
type term struct {
	words  []string
	prefix bool   // the last word may go on
	text   string // as it stands in the query
}

// terms are what a query asks for. The zero value says that it is not plain.
type terms struct {
	list  []term
	plain bool // nothing but words, prefixes, phrases, AND, OR, NOT and parentheses
	all   bool // all of them are needed: there is no OR, NOT or parenthesis
}

// readTerms reads a query in FTS5's language.
func readTerms(query string) terms {
	t := terms{plain: true, all: true}
	for i := 0; i < len(query); {
		switch c := query[i]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case c == '(' || c == ')':
			t.all = false
			i++
		case c == '"':
			end := strings.IndexByte(query[i+1:], '"')
			if end < 0 {
				return terms{}
			}
			end += i + 2
			if end < len(query) && query[end] == '"' { // a quote in the phrase
				return terms{}
			}
			if i = t.add(query, i, end); i < 0 {
				return terms{}
			}
		case isWordByte(c):
			end := i
			for end < len(query) && isWordByte(query[end]) {
				end++
			}
			switch query[i:end] {
			case "AND":
				i = end
			case "OR", "NOT":
				t.all = false
				i = end
			case "NEAR":
				return terms{}
			default:
				i = t.add(query, i, end)
			}
		default:
			return terms{}
		}
	}
	return t
}

// add takes the word or phrase from i to end and a star behind it, and returns where it ends; -1 where it is not plain.
func (t *terms) add(query string, i, end int) int {
	m := term{}
	text := query[i:end]
	for k := range tokens(text) {
		w := text[k.from:k.to]
		if !k.ascii {
			return -1
		}
		m.words = append(m.words, strings.ToLower(w))
	}
	if end < len(query) && query[end] == '*' {
		m.prefix = true
		end++
	}
	m.text = query[i:end]
	if len(m.words) == 0 {
		return -1
	}
	t.list = append(t.list, m)
	return end
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// token is where a word stands in a text.
type token struct {
	from, to int
	ascii    bool
}

// tokens yields the words of a text as FTS5's unicode61 cuts them: of ASCII exactly so, of the rest nearly.
func tokens(text string) func(yield func(token) bool) {
	return func(yield func(token) bool) {
		k := token{from: -1, ascii: true}
		for i := 0; i < len(text); {
			c := text[i]
			size, inWord, ascii := 1, isWordByte(c), true
			if c >= utf8.RuneSelf {
				var r rune
				r, size = utf8.DecodeRuneInString(text[i:])
				ascii, inWord = false, unicode.In(r, unicode.L, unicode.N, unicode.Co, unicode.M)
			}
			switch {
			case inWord && k.from < 0:
				k = token{from: i, ascii: ascii}
			case inWord:
				k.ascii = k.ascii && ascii
			case k.from >= 0:
				k.to = i
				if !yield(k) {
					return
				}
				k = token{from: -1}
			}
			i += size
		}
		if k.from >= 0 {
			k.to = len(text)
			yield(k)
		}
	}
}

// is reports whether the word at k is w, or with prefix begins with it.
func (k token) is(text, w string, prefix bool) bool {
	if n := k.to - k.from; n < len(w) || n > len(w) && !prefix {
		return false
	}
	for i := range len(w) {
		c := text[k.from+i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != w[i] {
			return false
		}
	}
	return prefix || k.ascii
}

// maybe reports whether the word at k, which is not all ASCII, may begin with w once FTS5 has taken its accents away.
func (k token) maybe(text, w string) bool {
	if k.ascii {
		return false
	}
	for i := range len(w) {
		c := text[min(k.from+i, k.to-1)]
		if c >= utf8.RuneSelf {
			return true
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != w[i] {
			return false
		}
	}
	return true
}

// has reports whether a text has a word with that prefix; sure is false where accents decide.
func hasPrefix(text, w string) (has, sure bool) {
	sure = true
	for k := range tokens(text) {
		if k.is(text, w, true) {
			return true, true
		}
		if k.maybe(text, w) {
			sure = false
		}
	}
	return false, sure
}

// Sizes of a snippet in words, and of the part of a text, from the first find, in which its best place is looked for.
const (
	snippetWords = 24
	snippetReach = 4 * snippetWords
)

// found is a term in a text, by the numbers of its words.
type found struct{ term, from, to int }

// marked cuts from a text the words around the most of the terms and puts marks around these; "" where there are none.
func (t *terms) marked(text string) string {
	words := make([]token, 0, 2*snippetReach)
	finds := make([]found, 0, snippetReach/4)
	for k := range tokens(text) {
		words = append(words, k)
		for n := range t.list {
			if from := len(words) - len(t.list[n].words); from >= 0 && t.list[n].at(text, words[from:]) {
				finds = append(finds, found{n, from, len(words)})
			}
		}
		if len(finds) > 0 && len(words) > finds[0].to+snippetReach {
			break
		}
	}
	if len(finds) == 0 {
		return ""
	}
	slices.SortStableFunc(finds, func(a, b found) int { return a.from - b.from })
	first, last := best(finds)
	from := max(0, first-max(0, snippetWords-(last-first))/2)
	to := min(from+snippetWords, len(words))
	var b strings.Builder
	at := 0
	if from > 0 {
		at = words[from].from
		b.WriteString("…")
	}
	for _, f := range finds {
		if f.from < from || f.to > to || words[f.from].from < at {
			continue
		}
		b.WriteString(text[at:words[f.from].from] + markOpen)
		at = words[f.to-1].to
		b.WriteString(text[words[f.from].from:at] + markClose)
	}
	if to == len(words) {
		b.WriteString(text[at:])
		return b.String()
	}
	b.WriteString(text[at:max(at, words[to-1].to)] + "…")
	return b.String()
}

// at reports whether the term is these words.
func (m *term) at(text string, words []token) bool {
	for i, w := range m.words {
		if !words[i].is(text, w, m.prefix && i == len(m.words)-1) {
			return false
		}
	}
	return true
}

// best chooses the run of finds, short enough for a snippet, that shows the most different terms, then the most finds, then
// comes first, and returns its first word and the one behind its last.
func best(finds []found) (first, last int) {
	most := -1
	for i, f := range finds {
		different, n, end := 0, 0, f.to
		for k, g := range finds[i:] {
			if g.to-f.from > snippetWords {
				break
			}
			if !slices.ContainsFunc(finds[i:i+k], func(h found) bool { return h.term == g.term }) {
				different++
			}
			n, end = n+1, max(end, g.to)
		}
		if score := 1000*different + n; score > most {
			most, first, last = score, f.from, end
		}
	}
	return first, last
}
