package indexer

import (
	"strings"
	"unicode"

	"mailtree/maildir"
)

// match is a query in FTS5's language.
type match struct {
	whole    string // words and filters
	rootless string // without the filter on thread
	user     string // the words alone
	cut      string // whole, with prefixes cut to a length that the full-text index keeps; "" where none is longer
	terms    terms
}

// none reports whether no message can match: no word has a letter or digit.
func (m match) none() bool { return m.whole == "" }

// invalidQuery says that the words cannot be read as FTS5's language.
var invalidQuery = &maildir.Error{Kind: maildir.ErrInvalid,
	Text: `The query cannot be read: check that quotes and parentheses are closed and that words with punctuation are quoted ("bug-17").`}

// expression wraps the user's words so that they concern subject and body only, and adds the filters.
func expression(pid int64, q maildir.SearchQuery) (match, error) {
	words := strings.TrimSpace(q.Match)
	if words != "" && q.Plain {
		if words = quoted(words); words == "" {
			return match{}, nil
		}
	}
	if !balanced(words) {
		return match{}, invalidQuery
	}
	var m match
	if words != "" {
		m.user, m.terms = inText(words), readTerms(words)
	}
	var filters []string
	if q.From != "" {
		filters = append(filters, facet(pid, "f", q.From))
	}
	if q.To != "" {
		filters = append(filters, facet(pid, "r", q.To))
	}
	rootless := filters
	if q.Thread != "" {
		filters = append(filters[:len(filters):len(filters)], facet(pid, "t", q.Thread))
	}
	m.whole, m.rootless = m.with(pid, filters), m.with(pid, rootless)
	if words, ok := m.terms.cut(); ok {
		m.cut = match{user: inText(words)}.with(pid, filters)
	}
	return m, nil
}

// inText says that words concern subject and body only.
func inText(words string) string { return "{subject body} : (" + words + ")" }

// cut is the query with every prefix that is longer than the full-text index keeps cut to one that it does keep: what
// matches the query matches that, and its matches come one by one. ok is false where there is no such prefix, or where
// not all terms are needed.
func (t *terms) cut() (words string, ok bool) {
	var parts []string
	for _, m := range t.list {
		part := m.text
		if n := keptPrefix(m); n > 0 {
			part, ok = m.words[0][:n]+"*", true
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " "), ok && t.plain && t.all
}

// keptPrefix is how much of a term that is a long prefix is in the prefix indexes of schema.sql (2, 3 and 5 letters); 0 of
// another. FTS5 answers a prefix of another length by merging all places of all words that begin with it, newest first
// or not: 0.7 s of a million messages.
func keptPrefix(m term) int {
	switch n := 0; {
	case len(m.words) == 1 && m.prefix:
		if n = len(m.words[0]); n > 5 {
			return 5
		}
		if n == 4 {
			return 3
		}
	}
	return 0
}

// with adds filters to the words; without any, that on the project alone, which is part of all others.
func (m match) with(pid int64, filters []string) string {
	if len(filters) == 0 {
		filters = []string{facet(pid, "p", "")}
	}
	var parts []string
	if m.user != "" {
		parts = append(parts, m.user)
	}
	for _, f := range filters {
		parts = append(parts, `facets : "`+f+`"`)
	}
	return strings.Join(parts, " AND ")
}

// balanced reports whether quotes are closed and parentheses outside of them match, so that what stands around the
// words cannot be drawn into them. A NUL would end the text early.
func balanced(words string) bool {
	depth := 0
	inString := false
	for _, r := range words {
		switch {
		case r == 0:
			return false
		case r == '"':
			inString = !inString
		case inString:
		case r == '(':
			depth++
		case r == ')':
			if depth--; depth < 0 {
				return false
			}
		}
	}
	return depth == 0 && !inString
}

// quoted makes of blank-separated words one phrase each, all of them needed. Words without a letter or digit are left
// out: they have no token.
func quoted(words string) string {
	var out []string
	for _, w := range strings.Fields(strings.ReplaceAll(words, "\x00", " ")) {
		if strings.ContainsFunc(w, func(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.Co) }) {
			out = append(out, `"`+strings.ReplaceAll(w, `"`, `""`)+`"`)
		}
	}
	return strings.Join(out, " ")
}
