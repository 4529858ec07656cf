package glob

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Clean normalizes a pattern. The result is slash-separated, without "./", double slashes or surrounding white space. A
// trailing slash after a wildcard becomes /**, and any other trailing slash is removed. A pattern that is absolute or
// has a .. element is only trimmed, because Compile rejects it.
func Clean(p string) string {
	p = strings.TrimSpace(p)
	if p == "" || p[0] == '/' || slices.Contains(strings.Split(p, "/"), "..") {
		return p
	}
	return cleanSlashes(p)
}

// cleanSlashes is like Clean, but it does not trim white space, and it also changes a pattern that is absolute or has a
// .. element. p is a whole pattern or one alternative in its braces.
func cleanSlashes(p string) string {
	clean := path.Clean(p)
	if !strings.HasSuffix(p, "/") || !HasWildcards(clean) || clean == "**" || strings.HasSuffix(clean, "/**") {
		return clean
	}
	return clean + "/**"
}

// HasWildcards reports whether a pattern contains a wildcard, class or brace group that is not escaped with \.
func HasWildcards(p string) bool {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '\\':
			i++
		case '*', '?', '[', '{':
			return true
		}
	}
	return false
}

// Pattern is a compiled pattern. It is immutable and safe for concurrent use.
type Pattern struct {
	alts    [][]element // the alternatives in the pattern's braces; a path matches the pattern if it matches one of them
	prefix  string      // prefix of every matching path
	suffix  string      // suffix of every matching path
	literal string      // the path that Literal returns
	fold    bool
}

// Literal returns the path of a pattern that has no wildcards or alternatives. The pattern covers the file at this
// path, or the folder with everything below it. The path is folded if the pattern ignores case. Literal returns "" for
// other patterns and for the whole repository.
func (p *Pattern) Literal() string { return p.literal }

// Prefix returns a prefix of every matching path. It returns "" if the pattern's text does not determine a prefix, or
// if the pattern ignores case.
func (p *Pattern) Prefix() string {
	if p.fold {
		return ""
	}
	return p.prefix
}

// element is one path element in a pattern.
type element struct {
	deep   bool    // **: any number of elements, including none
	text   string  // the name, if there are no wildcards; folded if the pattern ignores case
	tokens []token // the tokens, if there are wildcards; otherwise nil
}

// token matches one character or, if char is star, any number of characters.
type token struct {
	char  rune   // a character; star (-1) means any number of characters
	class []span // if not nil, the token matches these characters instead of char; sorted, not adjacent, never empty
}

// span is a range of characters that includes both ends.
type span struct{ lo, hi rune }

const star rune = -1

// Overlaps reports whether any path matches both patterns. Both patterns must be compiled with the same fold. The
// number of steps is at most the product of the patterns' lengths with all braces expanded. See docs/reference/tree.md,
// "A claim".
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

// Covers reports whether path matches the pattern. path is the path of a single file, slash-separated, clean and
// relative to the code repository's root. Each of its characters is literal, even *?[]{}\, and path may contain invalid
// UTF-8. Unlike a pattern with the same text, path does not include anything below it. See docs/reference/tree.md, "A
// claim".
func (p *Pattern) Covers(path string) bool {
	switch {
	case path == "":
		return false
	case !p.fold && !(strings.HasPrefix(path, p.prefix) && strings.HasSuffix(path, p.suffix)):
		return false // nearly all calls return here
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

// meets reports whether any name matches both elements. Neither element may be **.
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

// meets reports whether any character matches both tokens. Neither token may be a star.
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

// meet reports whether any text matches both sequences of items. A repeating item (* or **) matches any sequence of
// items, even an empty one. Every other item matches at least one text. meet calls match at most once for each pair
// of items.
//
// First, meet matches and removes items at both ends, until one sequence begins with a repeating item, and one sequence
// ends with a repeating item. If both sequences contain a repeating item, they have a common match, because each
// repeating item absorbs the other sequence's items. If only one sequence contains repeating items, the other has a
// fixed length. In that case, meet matches each run of items between repeating items as early as possible, which leaves
// the most room for the remaining items.
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
	run, from := -1, 0 // if run >= 0, p[run:] follows the last repeating item and is tried at q[from:]
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

// matchName reports whether a name matches an element with wildcards. It works like meet.
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

// within reports whether any of the ranges contains c.
func within(a []span, c rune) bool {
	for _, s := range a {
		if c <= s.hi {
			return c >= s.lo
		}
	}
	return false
}

// intersect reports whether any character is in both a and b.
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
