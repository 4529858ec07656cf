package indexer

import (
	"strings"
	"unicode"

	"mailtree/maildir"
	"mailtree/maildir/refusal"
)

// match is a query in FTS5's language.
type match struct {
	whole    string // words and filters
	rootless string // without the filter on thread
	user     string // the words alone
}

// none reports whether no message can match: no word has a letter or digit.
func (m match) none() bool { return m.whole == "" }

// invalidQuery says that the words cannot be read as FTS5's language.
func invalidQuery(words string) error {
	return &maildir.Error{What: refusal.QueryMalformed, Field: refusal.Query, Name: words}
}

// expression wraps the user's words so that they concern subject and body only, and adds the
// filters.
func expression(pid int64, q maildir.SearchQuery) (match, error) {
	words := strings.TrimSpace(q.Match)
	if words != "" && q.Plain {
		if words = quoted(words); words == "" {
			return match{}, nil
		}
	}
	if !balanced(words) {
		return match{}, invalidQuery(words)
	}
	var m match
	if words != "" {
		m.user = "{subject body} : (" + words + ")"
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
	return m, nil
}

// with adds filters to the words; without any, that on the project alone, which is part of all
// others.
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

// balanced reports whether quotes are closed and parentheses outside of them match, so that what
// stands around the words cannot be drawn into them. A NUL would end the text early.
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

// quoted makes of blank-separated words one phrase each, all of them needed. Words without a letter
// or digit are left out: they have no token.
func quoted(words string) string {
	var out []string
	for _, w := range strings.Fields(strings.ReplaceAll(words, "\x00", " ")) {
		if strings.ContainsFunc(w, func(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.Co) }) {
			out = append(out, `"`+strings.ReplaceAll(w, `"`, `""`)+`"`)
		}
	}
	return strings.Join(out, " ")
}
