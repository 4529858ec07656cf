package query

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// maxDepth is the maximum nesting depth of groups. The index limits its own expressions to 256 levels.
const maxDepth = 32

// errSyntax means that quotes, parentheses or operators are unbalanced.
var errSyntax = errors.New("syntax")

// Parse parses a query. If quotes, parentheses or operators are unbalanced, it reads all words as plain text. It
// returns ErrInvalid if the text is empty, contains no letter or digit, or contains an invalid filter. Ages, as in
// after:2d, count from now. See docs/reference/tools.md, "Search".
func Parse(text string, now time.Time) (Query, error) {
	all, l := tokens(text)
	if len(all) == 0 {
		return Query{}, invalid(refusal.Invalid("{field} is empty: use words, \"a phrase\", pre*, AND, OR, NOT, or from: to: cc: "+
			"subject: thread: importance: after: before: has:file is:unread."), "")
	}
	p := parser{rest: all, now: now}
	e, err := p.either(0)
	if err == nil && (l.unclosed || len(p.rest) > 0) {
		err = errSyntax
	}
	q := Query{Mistaken: l.mistaken, Meant: l.meant, Wild: l.wild, Foreign: l.foreign, Lower: l.lower, Unspaced: l.unspaced}
	if errors.Is(err, errSyntax) {
		q.Plain = true
		e, err = plain(all, now)
	}
	if err == nil && e == nil && !slices.ContainsFunc(all, token.everything) {
		err = invalid(refusal.Invalid("{field} {name} contains no letters or digits, so there is nothing to search for: "+
			"use a word, or * for every message."), text)
	}
	if err == nil {
		q.Expr, err = q.takeWhole(e, now)
	}
	return q, err
}

// everything reports whether the token is a single *, which matches every message.
func (t token) everything() bool { return t.kind == word && t.text == "" && t.prefix }

func invalid(what refusal.What, name string) error {
	return &refusal.Error{What: what, Field: refusal.Query, Name: name}
}

// parser parses tokens. A word without letters or digits becomes a nil Expr, which matches every message.
type parser struct {
	rest []token
	now  time.Time
}

func (p *parser) peek(n int) kind {
	if n >= len(p.rest) {
		return end
	}
	return p.rest[n].kind
}

func (p *parser) next() token {
	t := p.rest[0]
	p.rest = p.rest[1:]
	return t
}

// either parses alternatives separated by OR.
func (p *parser) either(depth int) (Expr, error) {
	var alternatives [][]Expr
	for {
		parts, err := p.both(depth)
		if err != nil {
			return nil, err
		}
		if len(parts) > 0 {
			alternatives = append(alternatives, parts)
		}
		if p.peek(0) != or {
			return shareFilters(alternatives), nil
		}
		p.next()
	}
}

// shareFilters joins alternatives with Or. If only one alternative has filters next to words, these filters apply to
// all alternatives.
func shareFilters(alternatives [][]Expr) Expr {
	var filters, words, whole []Expr
	sharers := 0
	for _, parts := range alternatives {
		those, rest := split(parts)
		switch {
		case len(those) > 0 && len(rest) == 0:
			sharers = 2 // an alternative consists only of filters, so none are shared
		case len(those) > 0:
			sharers++
		}
		filters = append(filters, those...)
		words = append(words, all(rest))
		whole = append(whole, all(parts))
	}
	if sharers != 1 {
		return anyOf(whole)
	}
	return all(append(filters, anyOf(words)))
}

// split separates the filters from the other expressions.
func split(parts []Expr) (filters, rest []Expr) {
	for _, x := range parts {
		if onlyFilters(x) {
			filters = append(filters, x)
		} else {
			rest = append(rest, x)
		}
	}
	return filters, rest
}

func onlyFilters(e Expr) bool {
	switch e := e.(type) {
	case Filter:
		return true
	case Not:
		return onlyFilters(e.Of)
	case Or:
		return !slices.ContainsFunc(e, func(x Expr) bool { return !onlyFilters(x) })
	}
	return false
}

// both parses parts that are separated by AND or only by spaces.
func (p *parser) both(depth int) ([]Expr, error) {
	var parts []Expr
	for {
		e, err := p.one(depth)
		if err != nil {
			return nil, err
		}
		if e != nil {
			parts = append(parts, e)
		}
		switch p.peek(0) {
		case and:
			p.next()
		case or, closed, end:
			return parts, nil
		}
	}
}

// one parses a word, phrase, filter or group, possibly preceded by NOT.
func (p *parser) one(depth int) (Expr, error) {
	if len(p.rest) == 0 || depth > maxDepth {
		return nil, errSyntax
	}
	switch t := p.next(); t.kind {
	case not:
		e, err := p.one(depth + 1)
		if err != nil || e == nil {
			return nil, err
		}
		return Not{e}, nil
	case open:
		e, err := p.either(depth + 1)
		if err == nil && p.peek(0) != closed {
			err = errSyntax
		}
		if err == nil {
			p.next()
		}
		return e, err
	case word:
		return t.term(), nil
	case filter:
		return p.filters(t)
	}
	return nil, errSyntax
}

// filters parses a filter and any filters joined to it with OR.
func (p *parser) filters(t token) (Expr, error) {
	first, err := t.filter(p.now)
	joined := []Expr{first}
	for err == nil && p.peek(0) == or && p.peek(1) == filter {
		p.next()
		var e Expr
		e, err = p.next().filter(p.now)
		joined = append(joined, e)
	}
	return anyOf(joined), err
}

// term returns the token as a Term, or nil if the token contains nothing to search for.
func (t token) term() Expr {
	if !strings.ContainsFunc(t.text, searched) {
		return nil
	}
	in := map[Key]Column{inSubject: Subject, inBody: Body}[t.key]
	return Term{Text: t.text, Prefix: t.prefix, In: in}
}

// filter parses and checks a filter. It returns ErrInvalid for an invalid filter.
func (t token) filter(now time.Time) (Expr, error) {
	f := Filter{Key: t.key, Value: t.text}
	name := string(t.key) + ":"
	switch {
	case t.text == "":
		return nil, invalid(refusal.Invalid("{name} {arg} has no value: write it as {=name}VALUE, or quote the word to "+
			"search for it."), name)
	case t.key == Is && !strings.EqualFold(t.text, "unread"):
		return nil, invalid(refusal.Invalid("{name} {arg} is not a filter: write is:unread, or quote it to search for it."), name+t.text)
	case t.key == Has:
		if !slices.Contains([]string{"file", "files", "attachment", "attachments"}, strings.ToLower(t.text)) {
			return nil, invalid(refusal.Invalid("{name} {arg} is not a filter: write has:file, or quote it to search for it."), name+t.text)
		}
		f.Value = HasFile
	case t.several():
		return nil, &refusal.Error{
			What:  refusal.Invalid("{name} {arg} is not a single value: each filter takes one value. Write {=other}."),
			Field: refusal.Query,
			Name:  name + t.text,
			Other: name + strings.Join(t.values(), " OR "+name),
		}
	case f.Key == Importance:
		f.Value = strings.ToLower(f.Value)
		if !slices.Contains([]string{"low", "normal", "high", "urgent"}, f.Value) {
			return nil, invalid(refusal.ImportanceUnknown, "importance:"+t.text)
		}
	case f.Key == After, f.Key == Before:
		if _, err := parseTime(f.Value, now); err != nil {
			return nil, &refusal.Error{
				What: refusal.Invalid("{name} {arg} is not a time: write {=other}:2025-10-23, {=other}:2025-10-23T15:22:14Z or " +
					"{=other}:2d for two days ago."),
				Field: refusal.Query,
				Name:  f.Value,
				Other: string(f.Key),
			}
		}
	}
	return f, nil
}

// several reports whether a filter's value is a group or a list. A name cannot contain parentheses or commas, but a
// thread id can.
func (t token) several() bool {
	return t.key != Thread && strings.ContainsAny(t.text, "(,") && len(t.values()) > 0
}

// values returns the names in a group or a list, such as "(A OR B)" or "A,B".
func (t token) values() []string {
	all := strings.FieldsFunc(t.text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("(),\"|", r) })
	return slices.DeleteFunc(all, func(s string) bool { return s == "OR" || s == "AND" })
}

// plain reads every word as text, including operators, but keeps the filters.
func plain(tokens []token, now time.Time) (Expr, error) {
	var parts []Expr
	for _, t := range tokens {
		var e Expr
		if t.kind == filter {
			var err error
			if e, err = t.filter(now); err != nil {
				return nil, err
			}
		} else {
			for _, w := range strings.Fields(t.text) {
				if x := (token{text: w, key: t.key}).term(); x != nil {
					parts = append(parts, x)
				}
			}
		}
		if e != nil {
			parts = append(parts, e)
		}
	}
	return all(parts), nil
}

// takeWhole moves the filters that apply to the whole query from e into q.
func (q *Query) takeWhole(e Expr, now time.Time) (Expr, error) {
	parts, ok := e.(And)
	if !ok && e != nil {
		parts = And{e}
	}
	var rest []Expr
	for _, x := range parts {
		f, _ := x.(Filter)
		switch f.Key {
		case Thread:
			q.Thread = f.Value
		case After:
			q.After, _ = parseTime(f.Value, now)
		case Before:
			q.Before, _ = parseTime(f.Value, now)
		case Is:
			q.Unread = true
		default:
			rest = append(rest, x)
		}
	}
	var err error
	left := Map(all(rest), func(f Filter) Expr {
		if f.Key.ofWhole() {
			err = invalid(refusal.Invalid("{name} {arg} applies to the whole query: write it once, outside OR, NOT "+
				"and parentheses, or search twice."), string(f.Key)+":"+f.Value)
		}
		return f
	})
	return left, err
}

// parseTime parses a date, a time, a number of seconds since 1970, or an age, which counts from now.
func parseTime(s string, now time.Time) (time.Time, error) {
	if age, ok := format.ParseSpan(s); ok {
		return now.Add(-age).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02", "2006-01", "2006"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n > 9999 && n < 1<<36 {
		return time.Unix(n, 0).UTC(), nil
	}
	return time.Time{}, errors.New("not a time")
}
