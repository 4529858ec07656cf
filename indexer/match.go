package indexer

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/query"
)

// match is a query in FTS5's query language.
type match struct {
	whole  string // words and filters
	user   string // only the words; "" if there are no words or if all of them exclude messages
	prefix bool   // whether the search may take a long time, as reported by hasSlowPrefix
}

func expression(pid int64, q index.SearchQuery) match {
	f := fts{pid}
	m := match{whole: f.scoped(q.Expr)}
	if q.Thread != "" {
		m.whole = f.facet("t", q.Thread)
		if q.Expr != nil {
			m.whole += " AND " + f.render(query.And{q.Expr})
		}
	}
	words := query.Map(q.Expr, func(query.Filter) query.Expr { return nil })
	if finds(words) {
		m.user = f.render(words)
	}
	m.prefix = hasSlowPrefix(q.Expr)
	return m
}

// hasSlowPrefix reports whether the expression contains a prefix for which FTS5 has no index. FTS5 has an index only
// for prefixes of three letters.
func hasSlowPrefix(e query.Expr) bool {
	switch e := e.(type) {
	case query.And:
		return slices.ContainsFunc(e, hasSlowPrefix)
	case query.Or:
		return slices.ContainsFunc(e, hasSlowPrefix)
	case query.Not:
		return hasSlowPrefix(e.Of)
	case query.Term:
		return e.Prefix && utf8.RuneCountInString(e.Text[strings.LastIndexByte(e.Text, ' ')+1:]) != 3
	}
	return false
}

// finds reports whether e contains words to search for, and not only words to exclude.
func finds(e query.Expr) bool {
	switch e := e.(type) {
	case query.And:
		return slices.ContainsFunc(e, finds)
	case query.Or:
		return slices.ContainsFunc(e, finds)
	case query.Term:
		return true
	}
	return false
}

// fts renders queries for a project's messages in FTS5's query language.
type fts struct{ pid int64 }

// scoped renders e so that it matches only messages of the project.
func (f fts) scoped(e query.Expr) string {
	switch {
	case e == nil:
		return f.facet("p", "")
	case ownFacet(e):
		return f.render(e)
	}
	return f.render(query.And{e}) + " AND " + f.facet("p", "")
}

// ownFacet reports whether e requires at least one facet. If so, e matches only messages of the project, because every
// facet identifies its project.
func ownFacet(e query.Expr) bool {
	switch e := e.(type) {
	case query.And:
		return slices.ContainsFunc(e, ownFacet)
	case query.Or:
		return !slices.ContainsFunc(e, func(x query.Expr) bool { return !ownFacet(x) })
	case query.Filter:
		return e != normal
	}
	return false
}

// normal is the filter for normal importance. This importance has no facet, because nearly all messages have it.
var normal = query.Filter{Key: query.Importance, Value: format.Normal}

// render converts an expression to FTS5's query language, which has no unary NOT.
func (f fts) render(e query.Expr) string {
	switch e := e.(type) {
	case query.And:
		var with, without []string
		for _, x := range e {
			if not, ok := x.(query.Not); ok {
				without = append(without, f.render(not.Of))
			} else {
				with = append(with, f.render(x))
			}
		}
		return f.group(" AND ", with, without)
	case query.Or:
		var parts []string
		for _, x := range e {
			parts = append(parts, f.render(x))
		}
		return "(" + strings.Join(parts, " OR ") + ")"
	case query.Not:
		return f.group("", nil, []string{f.render(e.Of)})
	case query.Term:
		return term(e)
	case query.Filter:
		return f.filter(e)
	}
	return f.facet("p", "")
}

// group joins the expressions in the first list with the operator, and excludes everything that an expression in the
// second list matches. An empty first list matches all messages in the project.
func (f fts) group(operator string, with, without []string) string {
	if len(with) == 0 {
		with = []string{f.facet("p", "")}
	}
	text := strings.Join(with, operator)
	if len(without) > 0 {
		text = "(" + text + ") NOT (" + strings.Join(without, " OR ") + ")"
	}
	return "(" + text + ")"
}

// term renders a phrase. The quotes prevent FTS5 from interpreting the text as operators.
func term(t query.Term) string {
	text := map[query.Column]string{query.Anywhere: "{subject body}", query.Subject: "subject", query.Body: "body"}[t.In] +
		` : "` + strings.ReplaceAll(t.Text, `"`, `""`) + `"`
	if t.Prefix {
		text += " *"
	}
	return text
}

func (f fts) filter(x query.Filter) string {
	if x == normal {
		var others []string
		for _, value := range []string{format.Low, format.High, format.Urgent} {
			others = append(others, f.facet("i", value))
		}
		return f.group("", nil, others)
	}
	i := slices.IndexFunc(faceted, func(is faceting) bool { return is.key == x.Key })
	return f.facet(faceted[i].letter, x.Value)
}

func (f fts) facet(about, name string) string { return `facets : "` + facet(f.pid, about, name) + `"` }
