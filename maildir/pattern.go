package maildir

import (
	"errors"
	"path"
	"strings"
	"unicode/utf8"
)

// Patterns of claims are paths or globs relative to the code repository's root, in the doublestar dialect:
//
//	*        any characters of one path element
//	?        one character of one path element
//	[a-z]    one character of a class; [^a-z] and [!a-z] one that is not
//	{a,b}    either pattern; may be nested, at most 100 alternatives in all
//	**       as a whole element: any number of elements, also none; elsewhere as *
//	\x       the character x
//
// A literal folder (also as an alternative of braces) covers what lies below it. Spec: 3 Claim.

// cleanPattern brings a claimed path into one form: slash separated, no "./", no doubled or trailing slash.
func cleanPattern(p string) string {
	p = strings.TrimSpace(p)
	if p == "" || strings.HasPrefix(p, "/") || strings.Contains(p, "..") {
		return p
	}
	return path.Clean(p)
}

// checkPattern says what is wrong with a claim's path, "" when nothing is.
func checkPattern(p string) string {
	switch {
	case p == "":
		return "it is empty"
	case len(p) > maxPattern:
		return "it is longer than 1024 bytes"
	case !utf8.ValidString(p):
		return "it is not valid UTF-8"
	case strings.ContainsFunc(p, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "it holds control characters"
	case strings.HasPrefix(p, "/"), len(p) > 1 && p[1] == ':':
		return "it is absolute: write it relative to the code repository's root"
	}
	for e := range strings.SplitSeq(p, "/") {
		if e == ".." {
			return "it leaves the repository"
		}
	}
	if _, err := compilePattern(p); err != nil {
		return err.Error()
	}
	return ""
}

// Overlap reports whether some path matches both patterns. A pattern that is not valid overlaps only itself.
func Overlap(a, b string) bool {
	if a == b {
		return true
	}
	x, errA := compilePattern(a)
	y, errB := compilePattern(b)
	if errA != nil || errB != nil {
		return false
	}
	for _, p := range x {
		for _, q := range y {
			if overlapElements(p, q) {
				return true
			}
		}
	}
	return false
}

// element is one path element of a pattern: nil is **, else a sequence of tokens.
type element []token

// token is one character out of some ranges, or with star any number of any characters.
type token struct {
	star  bool
	chars []span // sorted, not touching
}

type span struct{ lo, hi rune }

const maxAlternatives = 100

// compilePattern returns the pattern's alternatives without braces, each cut into elements.
func compilePattern(p string) ([][]element, error) {
	var all [][]element
	flat, err := expandBraces(p)
	if err != nil {
		return nil, err
	}
	for _, f := range flat {
		f = path.Clean(f)
		var elems []element
		for s := range strings.SplitSeq(f, "/") {
			e, err := compileElement(s)
			if err != nil {
				return nil, err
			}
			if s != "." {
				elems = append(elems, e)
			}
		}
		if !strings.ContainsAny(f, `*?[`) {
			elems = append(elems, nil)
		}
		all = append(all, elems)
	}
	return all, nil
}

var (
	errBrace = errors.New("a { has no }")
	errMany  = errors.New("its braces make more than 100 alternatives")
	errClass = errors.New("a [ has no ], or its class is empty or reversed")
	errSlash = errors.New(`it ends with a \`)
)

// expandBraces replaces the first brace group by each of its alternatives, and so on.
func expandBraces(p string) ([]string, error) {
	todo, done := []string{p}, []string(nil)
	for len(todo) > 0 {
		p, todo = todo[0], todo[1:]
		open, parts, end, err := firstGroup(p)
		if err != nil {
			return nil, err
		}
		if open < 0 {
			done = append(done, p)
		}
		for _, part := range parts {
			todo = append(todo, p[:open]+part+p[end:])
		}
		if len(todo)+len(done) > maxAlternatives {
			return nil, errMany
		}
	}
	return done, nil
}

// firstGroup finds the first {…} outside escapes and classes: where it opens, its alternatives, and where it ends.
// open is -1 when there is none.
func firstGroup(p string) (open int, parts []string, end int, err error) {
	open = -1
	depth, start, class := 0, 0, false
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '{':
			if depth++; depth == 1 {
				open, start = i, i+1
			}
		case c == ',' && depth == 1:
			parts, start = append(parts, p[start:i]), i+1
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				return open, append(parts, p[start:i]), i + 1, nil
			}
		}
	}
	if depth > 0 {
		return 0, nil, 0, errBrace
	}
	return -1, nil, 0, nil
}

var notSlash = []span{{0, '/' - 1}, {'/' + 1, utf8.MaxRune}}

func compileElement(s string) (element, error) {
	if s == "**" {
		return nil, nil
	}
	e := element{}
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch r {
		case '*':
			if len(e) == 0 || !e[len(e)-1].star {
				e = append(e, token{star: true})
			}
		case '?':
			e = append(e, token{chars: notSlash})
		case '[':
			chars, n, err := compileClass(s[i:])
			if err != nil {
				return nil, err
			}
			i += n
			e = append(e, token{chars: chars})
		case '\\':
			if i == len(s) {
				return nil, errSlash
			}
			r, n = utf8.DecodeRuneInString(s[i:])
			i += n
			fallthrough
		default:
			e = append(e, token{chars: []span{{r, r}}})
		}
	}
	return e, nil
}

// compileClass reads a class behind its [ and returns its characters and its length with the ].
func compileClass(s string) (chars []span, n int, err error) {
	negated := s != "" && (s[0] == '^' || s[0] == '!')
	if negated {
		n = 1
	}
	var in []span
	for {
		lo, k, ok := classChar(s[n:])
		if !ok {
			return nil, 0, errClass
		}
		if k == 0 {
			n++
			break
		}
		n += k
		hi := lo
		if strings.HasPrefix(s[n:], "-") {
			if hi, k, ok = classChar(s[n+1:]); !ok || k == 0 || hi < lo {
				return nil, 0, errClass
			}
			n += 1 + k
		}
		in = append(in, span{lo, hi})
	}
	if len(in) == 0 {
		return nil, 0, errClass
	}
	if negated {
		return subtract(notSlash, in), n, nil
	}
	return subtract(in, []span{{'/', '/'}}), n, nil
}

// classChar reads one character of a class; k is 0 at its end, ok false where the text ends first.
func classChar(s string) (r rune, k int, ok bool) {
	switch {
	case s == "" || s == `\`:
		return 0, 0, false
	case s[0] == ']':
		return 0, 0, true
	case s[0] == '\\':
		r, k = utf8.DecodeRuneInString(s[1:])
		return r, k + 1, true
	}
	r, k = utf8.DecodeRuneInString(s)
	return r, k, true
}

// subtract returns what is in a but in none of b.
func subtract(a, b []span) []span {
	for _, cut := range b {
		var rest []span
		for _, s := range a {
			if cut.hi < s.lo || cut.lo > s.hi {
				rest = append(rest, s)
				continue
			}
			if s.lo < cut.lo {
				rest = append(rest, span{s.lo, cut.lo - 1})
			}
			if s.hi > cut.hi {
				rest = append(rest, span{cut.hi + 1, s.hi})
			}
		}
		a = rest
	}
	return a
}

// overlapElements decides whether some path matches both lists, in at most len(p) × len(q) steps.
func overlapElements(p, q []element) bool {
	return meet(len(p), len(q), func(i int) bool { return p[i] == nil }, func(j int) bool { return q[j] == nil },
		func(i, j int) bool { return overlapTokens(p[i], q[j]) })
}

func overlapTokens(p, q element) bool {
	return meet(len(p), len(q), func(i int) bool { return p[i].star }, func(j int) bool { return q[j].star },
		func(i, j int) bool { return intersect(p[i].chars, q[j].chars) })
}

// meet walks two sequences side by side. One that repeats takes any number of the other's items, the others must
// match one by one. It marks which pairs of positions can be reached.
func meet(n, m int, repeatP, repeatQ func(int) bool, match func(i, j int) bool) bool {
	reached := make([]bool, (n+1)*(m+1))
	reached[0] = true
	for i := 0; i <= n; i++ {
		for j := 0; j <= m; j++ {
			if !reached[i*(m+1)+j] {
				continue
			}
			starP, starQ := i < n && repeatP(i), j < m && repeatQ(j)
			if starP || starQ && i < n {
				reached[(i+1)*(m+1)+j] = true
			}
			if starQ || starP && j < m {
				reached[i*(m+1)+j+1] = true
			}
			if i < n && j < m && !starP && !starQ && match(i, j) {
				reached[(i+1)*(m+1)+j+1] = true
			}
		}
	}
	return reached[len(reached)-1]
}

func intersect(a, b []span) bool {
	for _, x := range a {
		for _, y := range b {
			if x.lo <= y.hi && y.lo <= x.hi {
				return true
			}
		}
	}
	return false
}
