package glob

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Clean brings a pattern into one form: slash separated, no "./", no doubled or trailing slash.
func Clean(p string) string {
	p = strings.TrimSpace(p)
	if p == "" || strings.HasPrefix(p, "/") || strings.Contains(p, "..") {
		return p
	}
	return path.Clean(p)
}

// Pattern is a compiled pattern. It never changes: any number of goroutines may use it.
type Pattern struct {
	alts    [][]element // its alternatives without braces; a path matches the pattern when it matches one
	prefix  string      // what every path that matches begins with
	suffix  string      // and ends with
	literal string      // see Literal
	fold    bool
}

// Literal is the path that a pattern without wildcards and alternatives names: a file's, or a
// folder's with all below it; in one case where the pattern folds. "" for other patterns and for
// the whole repository.
func (p *Pattern) Literal() string { return p.literal }

// Prefix is what every path that matches begins with, as far as the pattern's text tells; "" where
// letters match whatever their case.
func (p *Pattern) Prefix() string {
	if p.fold {
		return ""
	}
	return p.prefix
}

// element is one path element of a pattern.
type element struct {
	deep   bool    // **: any number of elements, also none
	text   string  // of one without wildcards: the name, folded where the pattern folds
	tokens []token // of one with wildcards; nil for the others
}

// token stands for one character, or with star for any number of any characters.
type token struct {
	char  rune   // -1: star
	class []span // not nil: one of these instead of char; sorted, not touching, never empty
}

// span is a range of characters, both ends included.
type span struct{ lo, hi rune }

const star rune = -1

// Overlaps reports whether some path matches both patterns, which were compiled with the same fold.
// It takes at most as many steps as the product of their lengths, each with its braces written out.
// See docs/tree.md, "A claim".
func (p *Pattern) Overlaps(q *Pattern) bool {
	if n := min(len(p.prefix), len(q.prefix)); p.prefix[:n] != q.prefix[:n] {
		return false
	}
	if n := min(len(p.suffix), len(q.suffix)); p.suffix[len(p.suffix)-n:] != q.suffix[len(q.suffix)-n:] {
		return false
	}
	for _, a := range p.alts {
		for _, b := range q.alts {
			if meet(a, b, element.repeats, element.meets) {
				return true
			}
		}
	}
	return false
}

// Covers reports whether path matches the pattern. path is that of one file, slash separated, clean
// and relative to the code repository's root; each of its characters is an ordinary one, *?[]{}\
// too, and it need not be UTF-8. Overlaps takes the same path for a folder's where it is a pattern:
// what may lie below it counts there and not here. See docs/tree.md, "A claim".
func (p *Pattern) Covers(path string) bool {
	switch {
	case path == "":
		return false
	case !p.fold && !(strings.HasPrefix(path, p.prefix) && strings.HasSuffix(path, p.suffix)):
		return false // nearly all end here
	case p.fold && !(foldedSuffix(path, p.suffix) && foldedPrefix(path, p.prefix)):
		return false
	case p.fold:
		path = Fold(path)
	}
	var few [16]element
	elems := few[:0]
	for e := range strings.SplitSeq(path, "/") {
		elems = append(elems, element{text: e})
	}
	for _, a := range p.alts {
		if meet(a, elems, element.repeats, element.meets) {
			return true
		}
	}
	return false
}

func (e element) repeats() bool { return e.deep }

// meets decides whether some name matches both elements, of which neither is **.
func (e element) meets(f element) bool {
	switch {
	case e.tokens == nil && f.tokens == nil:
		return e.text == f.text
	case e.tokens == nil:
		return matchName(f.tokens, e.text)
	case f.tokens == nil:
		return matchName(e.tokens, f.text)
	}
	return meet(e.tokens, f.tokens, token.repeats, token.meets)
}

func (t token) repeats() bool { return t.char == star }

// meets decides whether some character matches both tokens, of which neither is a star.
func (t token) meets(u token) bool {
	switch {
	case t.class == nil && u.class == nil:
		return t.char == u.char
	case t.class == nil:
		return within(u.class, t.char)
	case u.class == nil:
		return within(t.class, u.char)
	}
	return intersect(t.class, u.class)
}

// meet decides whether two sequences have something in common. An item that repeats stands for any
// number of any items; each of the others can stand for something. It calls match at most once for
// each pair of items.
//
// Equal ends aside, one of the two begins, and one of them ends, with an item that repeats. If both
// hold one, they meet: each takes in what the other is made of. If one does, the other has a fixed
// length, and to match each run of the first as early as possible leaves the most room for the
// rest.
func meet[T any](p, q []T, repeats func(T) bool, match func(a, b T) bool) bool {
	for len(p) > 0 && len(q) > 0 && !repeats(p[0]) && !repeats(q[0]) {
		if !match(p[0], q[0]) {
			return false
		}
		p, q = p[1:], q[1:]
	}
	for len(p) > 0 && len(q) > 0 && !repeats(p[len(p)-1]) && !repeats(q[len(q)-1]) {
		if !match(p[len(p)-1], q[len(q)-1]) {
			return false
		}
		p, q = p[:len(p)-1], q[:len(q)-1]
	}
	openP, openQ := slices.ContainsFunc(p, repeats), slices.ContainsFunc(q, repeats)
	switch {
	case openP && openQ:
		return true
	case openQ:
		p, q = q, p
	}
	run, from := -1, 0 // of p, behind the last item that repeats; where in q it is tried
	i := 0
	for j := 0; j < len(q); {
		switch {
		case i < len(p) && repeats(p[i]):
			i++
			run, from = i, j
		case i < len(p) && match(p[i], q[j]):
			i, j = i+1, j+1
		case run >= 0:
			from++
			i, j = run, from
		default:
			return false
		}
	}
	return !slices.ContainsFunc(p[i:], func(t T) bool { return !repeats(t) })
}

// matchName is meet of an element with wildcards and a name.
func matchName(p []token, name string) bool {
	run, from := -1, 0
	i := 0
	for j := 0; j < len(name); {
		c, n := utf8.DecodeRuneInString(name[j:])
		switch {
		case i < len(p) && p[i].repeats():
			i++
			run, from = i, j
		case i < len(p) && p[i].meets(token{char: c}):
			i, j = i+1, j+n
		case run >= 0:
			_, n = utf8.DecodeRuneInString(name[from:])
			from += n
			i, j = run, from
		default:
			return false
		}
	}
	return !slices.ContainsFunc(p[i:], func(t token) bool { return !t.repeats() })
}

// within reports whether one of the ranges holds c.
func within(a []span, c rune) bool {
	for _, s := range a {
		if c <= s.hi {
			return c >= s.lo
		}
	}
	return false
}

// intersect reports whether some character is in both.
func intersect(a, b []span) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].hi < b[0].lo:
			a = a[1:]
		case b[0].hi < a[0].lo:
			b = b[1:]
		default:
			return true
		}
	}
	return false
}
