package glob

import (
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"
)

func TestOverlap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"app/api/*.py", "app/**/users.py", true},
		{"*.go", "cmd/*.go", false},
		{"src", "src/a/b.go", true},
		{"src/", "src/a/b.go", true},
		{"src", "srcs/a", false},
		{"{a,b}/*.go", "b/x.go", true},
		{"{a,b}/*.go", "c/x.go", false},
		{"[a-m]*", "[n-z]*", false},
		{"[a-n]*", "[n-z]*", true},
		{"[^a]x", "ax", false},
		{"[!a]x", "bx", true},
		{"**", "a/b/c", true},
		{"a/**/b", "a/b", true},
		{"a/**/b", "a/x/y/b", true},
		{"a/**/b", "a/x/y/[c]", false},
		{"a/**/b", "a/x/y/c", true},
		{"a/*/b", "a/[b]", false},
		{"*a", "b*", true},
		{"*a*", "*b*", true},
		{"a?c", "abc", true},
		{"a?c", "a/c", false},
		{`\*`, "x", false},
		{`\*`, "*", true},
		{".", "x/y", true},
		{"{a,{b,c}/d}", "c/d/e", true},
		{"x{,y}", "x", true},
		{"x{,y}", "x/y", true},
		{`a\*b`, "a*b/c", true},
		{`a\*b`, "a?b/c", true},
		{"[a-m]*", "n", false},
		{"[a-]x", "-x", true},
		{"[^a-]x", "-x", false},
		{`[\]]`, "]", true},
		{"a**b", "a/b", false},
		{"a**b", "axyb", true},
		{"{*,a}*/b", "x/y/b", true},
		{"a/**/**", "a", true},
		{"**/x", "x", true},
		{"**/a/**/b/**", "b/a/b/a", true},
		{"**/a*", "b*/**", true},
		{"**/a", "**/b", false},
		{"a/**", "b/**", false},
		{"a.go", "A.go", false},
		{"src/*/", "src/foo/c.go", true},
		{"src/*/", "src/foo/d/e.go", true},
		{"src/*/", "src/foo", true},
		{"src/*/", "lib/foo/c.go", false},
		{"a/*/b/", "a/x/b/c", true},
		{"a/*/b/", "a/x/c/b", false},
		{"a/**/b/", "a/b/c", true},
		{"a/**/b/", "b/a", false},
		{"a/**/", "a/x/y", true},
		{"**/", "x/y", true},
		{"[ab]/", "a/x", true},
		{"?/", "ab/x", false},
		{"{x,y*}/", "yz/a", true},
		{"{x/,y*/}", "yz/a", true},
		{"{x,y*/}z", "yz/z", true},
		{`src/\*/`, "src/a/c.go", false},
		{`src/\*/`, `src/\*/c.go`, true},
	} {
		if got := Overlap(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %v", c.a, c.b, got)
		}
		if got := Overlap(c.b, c.a); got != c.want {
			t.Errorf("%s, %s: %v", c.b, c.a, got)
		}
	}
	for _, p := range []string{"{a", "[a", "[", "[]", "[z-a]", `a\`, "../x", "a/../../x", "/x", "", "C:/x", "a\nb", strings.Repeat("{a,b}", 9),
		"..", "a/..", "{..,a}/x", "{.,a}./x", "{a,}/b", "{,a}", "{/a,b}", "{a/..,b}", "{C:,a}/x", "[/]", "[a/b]", "[b-a]", "a\xff", strings.Repeat("a", 1025),
		"{" + strings.Repeat("a,", 100) + "a}", "{a,b,c,d,e,f,g,h,i,j}" + strings.Repeat("x", 900)} {
		if _, err := Compile(p, false); err == nil {
			t.Errorf("%q was accepted", p)
		}
	}
}

// TestOverlapFold checks Overlaps for patterns that ignore case.
func TestOverlapFold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"src/A.go", "SRC/a.GO", true},
		{"src", "SRC/x", true},
		{"[A-M]*", "b", true},
		{"[a-m]*", "B", true},
		{"[A-M]*", "n", false},
		{"[^a]", "A", false},
		{"[^a]", "b", true},
		{"[!A-Z]", "q", false},
		{"[ -z]", "É", false},
		{"é", "É", true},
		{"[à-ý]x", "ÉX", true},
		{"k", "\u212a", true}, // the Kelvin sign
		{"[j-l]", "\u212a", true},
		{"[^k]", "\u212a", false},
		{"\u00df", "\u1e9e", true}, // sharp s
		{"\u00df", "ss", false},
		{"[\u00a0-\u0fff]", "\u1e9e", true}, // a class with many characters
		{"[\u1000-\uffff]", "\u00df", true},
		{"σ", "ς", true},
		{"{A,b}/*.GO", "B/x.go", true},
		{`\A`, "a", true},
	} {
		p, err := Compile(c.a, true)
		q, err2 := Compile(c.b, true)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if p.Overlaps(q) != c.want || q.Overlaps(p) != c.want {
			t.Errorf("%s, %s: %v, %v", c.a, c.b, p.Overlaps(q), q.Overlaps(p))
		}
	}
	for c := rune(1); c < 0x20000; c++ { // a large class must also contain the other cases of its characters
		for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
			if !within(joined(foldSpans([]span{{max(c-200, 1), c + 200}})), f) {
				t.Errorf("%U is not among the cases of a range around %U", f, c)
			}
			if foldRune(f) != foldRune(c) {
				t.Errorf("%U and %U fold apart", f, c)
			}
		}
	}
}

// grammar generates patterns over the letters a, b and B that use all features of the pattern syntax.
type grammar struct{ rng *rand.Rand }

func (g grammar) pick(of ...string) string { return of[g.rng.IntN(len(of))] }

// text returns part of an element, with braces nested at most depth levels deep.
func (g grammar) text(depth int) string {
	switch n := g.rng.IntN(12); {
	case n < 4:
		return g.pick("a", "b", "B", "ab")
	case n < 7:
		return g.pick("*", "?", "**")
	case n < 10:
		return g.pick("[ab]", "[^a]", "[!B]", "[a-b]", "[A-B]", `[\a]`, `\a`, `\B`)
	case depth > 0:
		alts := make([]string, 1+g.rng.IntN(3))
		for i := range alts {
			alts[i] = g.path(depth - 1)
		}
		return "{" + strings.Join(alts, ",") + "}"
	}
	return "a"
}

func (g grammar) path(depth int) string {
	elems := make([]string, 1+g.rng.IntN(3)*g.rng.IntN(2))
	for i := range elems {
		if g.rng.IntN(6) == 0 {
			elems[i] = "**"
			continue
		}
		for range 1 + g.rng.IntN(2) {
			elems[i] += g.text(depth)
		}
	}
	return strings.Join(elems, "/")
}

// allPaths returns the paths with up to three elements of up to two letters each. The letters include z, which is in no
// pattern.
func allPaths() (paths []string) {
	var names []string
	for _, x := range []string{"", "a", "A", "b", "B", "z"} {
		for _, y := range []string{"a", "A", "b", "B", "z"} {
			names = append(names, x+y)
		}
	}
	for _, x := range names {
		paths = append(paths, x)
		for _, y := range names {
			paths = append(paths, x+"/"+y)
			if len(x+y) == 2 {
				for _, z := range names {
					paths = append(paths, x+"/"+y+"/"+z)
				}
			}
		}
	}
	return paths
}

// TestClean checks how patterns are normalized.
func TestClean(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"./a//b/": "a/b", "a/": "a", " a ": "a", "./": ".", ".": ".", "": "",
		"src/*/": "src/*/**", "src/*//": "src/*/**", "./src/*/": "src/*/**", "**/": "**", "a/**/": "a/**", "a/*/b/": "a/*/b/**",
		"*/": "*/**", "[ab]/": "[ab]/**", "{a,b}/": "{a,b}/**", "a**/": "a**/**", "foo..bar/*/": "foo..bar/*/**",
		`src/\*/`: `src/\*`, `a/\[id\]/`: `a/\[id\]`, "../x/": "../x/", "/x/": "/x/",
	} {
		if got := Clean(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := Clean(want); got != want {
			t.Errorf("the normal form %q is changed to %q", want, got)
		}
	}
}

func asRegexp(p string, fold bool) (*regexp.Regexp, error) {
	flat, err := expandBraces(p)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, f := range flat {
		var re strings.Builder
		wild := false
		if dir := strings.TrimSuffix(f, "/"); dir != f && strings.ContainsAny(strings.NewReplacer(`\a`, "", `\B`, "").Replace(dir), "*?[") {
			f = dir + "/**"
		}
		f = path.Clean(f)
		elems := slices.CompactFunc(strings.Split(f, "/"), func(a, b string) bool { return a == "**" && b == "**" })
		for i, e := range elems {
			if e == "**" {
				wild = true
				if i == len(elems)-1 {
					re.WriteString(`(?:[^/]+(?:/[^/]+)*)?`)
				} else {
					re.WriteString(`(?:[^/]+/)*`)
				}
				continue
			}
			for j := 0; j < len(e); j++ {
				switch e[j] {
				case '*':
					re.WriteString(`[^/]*`)
					wild = true
				case '?':
					re.WriteString(`[^/]`)
					wild = true
				case '[':
					end := j + strings.IndexByte(e[j:], ']')
					class := strings.Replace(strings.ReplaceAll(e[j+1:end], `\`, ""), "!", "^", 1)
					re.WriteString("[" + strings.Replace(class, "^", "^/", 1) + "]")
					wild, j = true, end
				case '\\':
					j++
					re.WriteString(regexp.QuoteMeta(e[j : j+1]))
				default:
					re.WriteString(regexp.QuoteMeta(e[j : j+1]))
				}
			}
			if i < len(elems)-1 {
				re.WriteString("/")
			}
		}
		if s := re.String(); strings.HasSuffix(s, `/(?:[^/]+(?:/[^/]+)*)?`) { // a/** also matches a
			all = append(all, strings.TrimSuffix(s, `/(?:[^/]+(?:/[^/]+)*)?`)+`(?:/.*)?`)
		} else if all = append(all, s); !wild {
			all = append(all, s+"/.*")
		}
	}
	flags := ""
	if fold {
		flags = "(?i)"
	}
	return regexp.Compile(flags + `\A(?:` + strings.Join(all, "|") + `)\z`)
}

// TestOverlapBruteForce compares Overlaps and Covers with regular expressions, which are matched against every path
// made from a few letters. If Overlaps reports an overlap but none of these paths matches both patterns, a longer path
// must be able to match both.
func TestOverlapBruteForce(t *testing.T) {
	t.Parallel()
	paths := allPaths()
	g, slash := grammar{rand.New(rand.NewPCG(1, 2))}, rand.New(rand.NewPCG(3, 4))
	type compiled struct {
		text string
		p    *Pattern
		on   []uint64 // the set of paths that match
	}
	for _, fold := range []bool{false, true} {
		var all []compiled
		for len(all) < 250 {
			raw := g.path(2) + []string{"", "/"}[slash.IntN(4)/3]
			c := compiled{text: Clean(raw)}
			var err error
			if c.p, err = Compile(c.text, fold); err != nil || len(c.text) > 24 {
				continue
			}
			unclean, err := Compile(raw, fold)
			if err != nil {
				t.Fatal(raw, err)
			}
			re, err := asRegexp(raw, fold)
			if err != nil {
				t.Fatal(c.text, err)
			}
			c.on = make([]uint64, len(paths)/64+1)
			for i, path := range paths {
				is := re.MatchString(path)
				if got := unclean.Covers(path); got != is {
					t.Fatalf("%s covers %s: %v, the regular expression %s says %v (fold %v)", raw, path, got, re, is, fold)
				}
				if got := c.p.Covers(path); got != is {
					t.Fatalf("%s covers %s: %v, the regular expression %s says %v (fold %v)", c.text, path, got, re, is, fold)
				}
				if ok, err := doublestar.Match(c.text, path); !fold && (err != nil || ok && !is) {
					t.Fatalf("%s matches %s for doublestar: %v %v", c.text, path, ok, err)
				}
				if is {
					c.on[i/64] |= 1 << (i % 64)
				}
			}
			all = append(all, c)
		}
		both, none := 0, 0
		for i, a := range all {
			for _, b := range all[i:] {
				got, want := a.p.Overlaps(b.p), false
				for k := range a.on {
					want = want || a.on[k]&b.on[k] != 0
				}
				switch {
				case got != b.p.Overlaps(a.p):
					t.Fatalf("%s and %s: not symmetric", a.text, b.text)
				case want && !got:
					t.Fatalf("%s and %s (fold %v) match the same path, but reportedly do not overlap", a.text, b.text, fold)
				case got && !want && a.p.short() && b.p.short():
					t.Fatalf("%s and %s (fold %v) reportedly overlap, but no path matches both", a.text, b.text, fold)
				case want:
					both++
				case !got:
					none++
				}
			}
		}
		if both < 1000 || none < 1000 {
			t.Errorf("%d pairs overlap, %d do not: the sample is not meaningful", both, none)
		}
	}
}

func valid(p string) bool {
	_, err := Compile(p, false)
	return err == nil
}

func (p *Pattern) short() bool {
	for _, a := range p.alts {
		names := 0
		for _, e := range a {
			if e.deep {
				continue
			}
			names++
			if len(e.tokens) > 2 || e.tokens == nil && len(e.text) > 2 {
				return false
			}
		}
		if names > 1 {
			return false
		}
	}
	return true
}

// TestOverlapBounded checks that comparing two sequences takes no more steps than the product of their lengths, even in
// the worst cases.
func TestOverlapBounded(t *testing.T) {
	t.Parallel()
	run := func(e string, n int) []token {
		c, err := compileElement(strings.Repeat(e, n), false)
		if err != nil {
			t.Fatal(err)
		}
		return c.tokens
	}
	sequences := map[string][]token{
		"stars": run("*a", 500), "classes": run("*[ab]", 200), "runs": run("*aaaaaaaab", 100), "any": run("?*", 500), "fixed": run("?", 1000), "same": run("[a]", 300),
		"end": append(run("*"+strings.Repeat("a", 500), 1), token{char: 'b'}, token{char: star}), "none": run("*c", 500),
	}
	for a, p := range sequences {
		for b, q := range sequences {
			steps := 0
			meet(p, q, token.repeats, func(x, y token) bool {
				steps++
				return x.meets(y)
			})
			if steps > len(p)*len(q) {
				t.Errorf("%s and %s: %d steps for %d × %d", a, b, steps, len(p), len(q))
			}
		}
	}
	p, err := Compile("{"+strings.Repeat("a,", 90)+"b}"+strings.Repeat("*x", 30), false)
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, a := range p.alts {
		for _, e := range a {
			size += len(e.tokens) + len(e.text)
		}
	}
	if size > maxExpanded {
		t.Errorf("one pattern expands to %d characters", size)
	}
}

// Overlap compiles both patterns and reports whether they overlap. An invalid pattern overlaps nothing.
func Overlap(a, b string) bool {
	p, errA := Compile(a, false)
	q, errB := Compile(b, false)
	return errA == nil && errB == nil && p.Overlaps(q)
}

func literal(p string) bool { return !strings.ContainsAny(p, "*?[{") }

func FuzzOverlap(f *testing.F) {
	f.Add("a/**", "*/b")
	f.Add("{a,b}[^c]", `\*?`)
	f.Fuzz(func(t *testing.T, a, b string) {
		a, b = Clean(a), Clean(b)
		if !valid(a) || !valid(b) {
			return
		}
		if Overlap(a, b) != Overlap(b, a) {
			t.Error("not symmetric")
		}
		if !Overlap(a, a) {
			t.Error("does not overlap itself")
		}
		if literal(a) && !strings.Contains(a, `\`) && a != "." {
			if ok, err := doublestar.Match(b, Clean(a)); err == nil && ok && !Overlap(a, b) {
				t.Errorf("%q matches %q", b, a)
			}
		}
		for _, fold := range []bool{false, true} { // ignoring case never removes an overlap
			p, _ := Compile(a, fold)
			if path := strings.Trim(b, "/"); path != "" && !strings.Contains(path, "//") && p.Covers(path) != p.Overlaps(exact(path, fold)) {
				t.Errorf("%q covers %q (fold %v): %v", a, path, fold, p.Covers(path))
			}
			if q, _ := Compile(b, fold); fold && Overlap(a, b) && !p.Overlaps(q) {
				t.Errorf("%q and %q overlap, but not if case is ignored", a, b)
			}
		}
	})
}
