package glob

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxLen is the maximum length of a pattern in bytes.
const maxLen = 1024

// These limits apply to the braces in a pattern.
const (
	maxAlternatives = 100        // maximum number of alternatives that the braces produce
	maxExpanded     = 8 * maxLen // maximum total length of all alternatives in bytes, which limits the cost of Overlaps
)

var (
	errEmpty    = errors.New("it is empty")
	errLong     = errors.New("it is longer than 1024 bytes")
	errText     = errors.New("it is not valid UTF-8")
	errControl  = errors.New("it contains control characters")
	errAbsolute = errors.New("it is absolute. Write the path relative to the code repository's root")
	errLeaves   = errors.New("it points outside the repository")
	errBrace    = errors.New("it contains a { without a matching }")
	errMany     = errors.New("its braces expand to more than 100 alternatives or more than 8192 bytes")
	errNothing  = errors.New("one of its brace alternatives is empty, which would match the whole repository. Remove " +
		"it, or claim . if you want the whole repository")
	errClass = errors.New("it contains a [ without a matching ], or a character class that is empty or has a " +
		"reversed range")
	errSlash = errors.New(`it ends with a \`)
)

// Compile compiles a path or glob. The text of its error completes the sentence "cannot be claimed: …".
//
// If fold is set, matching ignores case, as in a code repository with core.ignorecase. With that setting, Git itself
// folds only ASCII. However, the file systems for which Git uses the setting fold all of Unicode, so Compile does too.
// It maps one character to one character (simple folding): ä matches Ä, but ß does not match ss. As in Git, a class
// includes the other cases of its characters before it is negated: [A-M] matches a, and [^a] does not match A.
//
// See docs/reference/tree.md, "A claim".
func Compile(p string, fold bool) (*Pattern, error) {
	switch {
	case p == "":
		return nil, errEmpty
	case len(p) > maxLen:
		return nil, errLong
	case !utf8.ValidString(p):
		return nil, errText
	}
	for i := range len(p) {
		if p[i] < ' ' || p[i] == 0x7f {
			return nil, errControl
		}
	}
	flat, err := expandBraces(p)
	if err != nil {
		return nil, err
	}
	c := &Pattern{alts: make([][]element, len(flat)), fold: fold}
	for i, f := range flat {
		if err := checkPlace(f); err != nil {
			return nil, err
		}
		f = cleanSlashes(f)
		if c.alts[i], err = compileAlternative(f, fold); err != nil {
			return nil, err
		}
		prefix, suffix := ends(c.alts[i], f, fold)
		if i == 0 {
			c.prefix, c.suffix = prefix, suffix
		} else {
			c.prefix, c.suffix = common(c.prefix, prefix), commonEnd(c.suffix, suffix)
		}
	}
	c.literal = literalPath(c.alts)
	return c, nil
}

// literalPath returns the path of a pattern that has no wildcards or alternatives. It returns "" for other patterns and
// for the whole repository.
func literalPath(alts [][]element) string {
	last := len(alts[0]) - 1
	if len(alts) > 1 || !alts[0][last].deep {
		return ""
	}
	names := make([]string, last)
	for i, e := range alts[0][:last] {
		if e.deep || e.tokens != nil {
			return ""
		}
		names[i] = e.text
	}
	return strings.Join(names, "/")
}

// ends returns a prefix and a suffix of all paths that match an alternative. f is the text of the alternative.
func ends(elems []element, f string, fold bool) (prefix, suffix string) {
	prefix = foldIf(unescape(f[:literalLen(f)]), fold)
	last := elems[len(elems)-1]
	if suffix = last.text; last.tokens != nil {
		n := len(last.tokens)
		for n > 0 && last.tokens[n-1].class == nil && !last.tokens[n-1].repeats() {
			n--
		}
		var b strings.Builder
		for _, t := range last.tokens[n:] {
			b.WriteRune(t.char)
		}
		suffix = b.String()
	}
	return prefix, suffix
}

// checkPlace returns an error for an alternative that is outside the repository.
func checkPlace(f string) error {
	switch {
	case f == "":
		return errNothing
	case f[0] == '/', len(f) > 1 && f[1] == ':':
		return errAbsolute
	}
	for e := range strings.SplitSeq(f, "/") {
		if e == ".." {
			return errLeaves
		}
	}
	return nil
}

// compileAlternative splits a clean pattern without braces into elements. It adds ** to a literal pattern.
func compileAlternative(f string, fold bool) ([]element, error) {
	elems := make([]element, 0, strings.Count(f, "/")+2)
	literal := true
	for s := range strings.SplitSeq(f, "/") {
		switch {
		case s == ".": // f is clean, so only the pattern for the whole repository contains this element
		case s == "**":
			elems, literal = append(elems, element{deep: true}), false
		default:
			e, err := compileElement(s, fold)
			if err != nil {
				return nil, err
			}
			elems, literal = append(elems, e), literal && e.tokens == nil
		}
	}
	if literal {
		elems = append(elems, element{deep: true})
	}
	return elems, nil
}

// literalLen returns the length of the text before the first wildcard in a pattern without braces. The slash before a
// ** is not included, because a/** also matches a.
func literalLen(f string) int {
	for i := 0; i < len(f); i++ {
		switch f[i] {
		case '\\':
			i++
		case '*', '?', '[':
			if head, rest := f[:i], f[i:]; strings.HasSuffix(head, "/") && (rest == "**" || strings.HasPrefix(rest, "**/")) {
				return i - 1
			}
			return i
		}
	}
	if f == "." {
		return 0
	}
	return len(f)
}

// common returns the longest common prefix that consists of whole characters.
func common(a, b string) string {
	n := 0
	for i, c := range a {
		w := utf8.RuneLen(c)
		if !strings.HasPrefix(b[min(i, len(b)):], a[i:i+w]) {
			break
		}
		n = i + w
	}
	return a[:n]
}

// commonEnd returns the longest common suffix that consists of whole characters.
func commonEnd(a, b string) string {
	n := 0
	for n < len(a) {
		_, w := utf8.DecodeLastRuneInString(a[:len(a)-n])
		if !strings.HasSuffix(b, a[len(a)-n-w:]) {
			break
		}
		n += w
	}
	return a[len(a)-n:]
}

// unescape removes each \ but keeps the character after it.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// expandBraces returns the pattern's alternatives, with all brace groups expanded.
func expandBraces(p string) ([]string, error) {
	if !strings.Contains(p, "{") {
		return []string{p}, nil
	}
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
	size := 0
	for _, f := range done {
		size += len(f)
	}
	if size > maxExpanded {
		return nil, errMany
	}
	return done, nil
}

// firstGroup finds the first {…} outside escapes and classes. It returns the offset of the opening brace, the
// alternatives, and the offset after the group's end. If there is no group, open is -1.
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

// compileElement compiles an element other than **.
func compileElement(s string, fold bool) (element, error) {
	if !strings.ContainsAny(s, `*?[\`) {
		return element{text: foldIf(s, fold)}, nil
	}
	tokens := make([]token, 0, len(s))
	wild := false
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		i += n
		t := token{char: c}
		switch c {
		case '*':
			t.char = star
		case '?':
			t.class = notSlash
		case '[':
			var err error
			if t.class, n, err = compileClass(s[i:], fold); err != nil {
				return element{}, err
			}
			i += n
		case '\\':
			if i == len(s) {
				return element{}, errSlash
			}
			t.char, n = utf8.DecodeRuneInString(s[i:])
			i += n
			fallthrough
		default:
			if fold {
				t.char = foldRune(t.char)
			}
			tokens = append(tokens, t)
			continue
		}
		if wild = true; t.char != star || len(tokens) == 0 || !tokens[len(tokens)-1].repeats() {
			tokens = append(tokens, t)
		}
	}
	if !wild {
		return element{text: foldIf(unescape(s), fold)}, nil
	}
	return element{tokens: tokens}, nil
}

var notSlash = []span{{0, '/' - 1}, {'/' + 1, utf8.MaxRune}}

// compileClass compiles a character class. s begins after the [. It returns the class's characters, and the class's
// length including the ].
func compileClass(s string, fold bool) (chars []span, n int, err error) {
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
		n += k
		if k == 0 {
			n++
			break
		}
		hi := lo
		if strings.HasPrefix(s[n:], "-") && !strings.HasPrefix(s[n:], "-]") {
			if hi, k, ok = classChar(s[n+1:]); !ok || hi < lo {
				return nil, 0, errClass
			}
			n += 1 + k
		}
		in = append(in, span{lo, hi})
	}
	if len(in) == 0 {
		return nil, 0, errClass
	}
	if fold {
		in = foldSpans(in)
	}
	in = joined(in)
	chars = subtract(in, []span{{'/', '/'}})
	if negated {
		chars = subtract(notSlash, in)
	}
	if len(chars) == 0 {
		return nil, 0, errClass
	}
	return chars, n, nil
}

// classChar reads one character of a class. k is the number of bytes read, or 0 at the end of the class. ok is false
// if the text ends first.
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

// joined sorts the spans and joins overlapping or adjacent ones, in place.
func joined(in []span) []span {
	slices.SortFunc(in, func(a, b span) int { return int(a.lo - b.lo) })
	out := in[:1]
	for _, s := range in[1:] {
		if last := &out[len(out)-1]; s.lo <= last.hi+1 {
			last.hi = max(last.hi, s.hi)
		} else {
			out = append(out, s)
		}
	}
	return out
}

// subtract returns the characters in a that are not in b, in the order of a.
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
