package maildir

import (
	"math/rand/v2"
	"strings"
	"testing"

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
	} {
		if got := Overlap(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %v", c.a, c.b, got)
		}
		if got := Overlap(c.b, c.a); got != c.want {
			t.Errorf("%s, %s: %v", c.b, c.a, got)
		}
	}
	for _, p := range []string{"{a", "[a", "[", "[]", "[z-a]", `a\`, "../x", "a/../../x", "/x", "", "C:/x", "a\nb", strings.Repeat("{a,b}", 9)} {
		if checkPattern(p) == "" {
			t.Errorf("%q was accepted", p)
		}
	}
	bomb := strings.Repeat("*a", 500)
	if Overlap(bomb+"b", bomb+"c") {
		t.Error("bomb overlaps")
	}
}

// TestOverlapBruteForce holds Overlap against matching every path over a small alphabet.
func TestOverlapBruteForce(t *testing.T) {
	t.Parallel()
	var paths []string
	var names []string
	for _, a := range []string{"", "a", "b"} {
		for _, b := range []string{"a", "b"} {
			names = append(names, a+b)
		}
	}
	for _, x := range names {
		paths = append(paths, x)
		for _, y := range names {
			paths = append(paths, x+"/"+y)
			for _, z := range names {
				paths = append(paths, x+"/"+y+"/"+z)
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "b", "*", "?", "[ab]", "[^a]", "{a,b}", "{a,bb}", "**", "ab"}
	pattern := func() string {
		var elems []string
		for range 1 + rng.IntN(3) {
			e := ""
			for range 1 + rng.IntN(2) {
				if p := pieces[rng.IntN(len(pieces))]; p != "**" {
					e += p
				} else if e == "" {
					e = p
					break
				}
			}
			elems = append(elems, e)
		}
		return strings.Join(elems, "/")
	}
	matches := func(p, path string) bool {
		ok, err := doublestar.Match(p, path)
		if err != nil {
			t.Fatal(p, err)
		}
		flat, err := expandBraces(p)
		if err != nil {
			t.Fatal(p, err)
		}
		for _, f := range flat { // a literal folder covers what lies below it
			ok = ok || literal(f) && strings.HasPrefix(path, f+"/")
		}
		return ok
	}
	both := 0
	for range 4000 {
		a, b := pattern(), pattern()
		want := ""
		for _, path := range paths {
			if matches(a, path) && matches(b, path) {
				want = path
				both++
				break
			}
		}
		got := Overlap(a, b)
		if got && want == "" && fits(a, b) {
			t.Errorf("%s and %s are said to overlap, but no path matches both", a, b)
		}
		if !got && want != "" {
			t.Errorf("%s and %s both match %s", a, b, want)
		}
	}
	if both < 500 || both > 3500 {
		t.Errorf("%d of 4000 pairs overlap: the sample says little", both)
	}
}

// fits reports whether a common path, if there is one, must be among the generated ones: short names, at most three
// elements, no character but a and b needed.
func fits(a, b string) bool {
	for _, p := range []string{a, b} {
		if strings.Contains(p, "[^") || literal(p) {
			return false
		}
		for e := range strings.SplitSeq(p, "/") {
			if len(strings.NewReplacer("[ab]", "x", "{a,b}", "x", "{a,bb}", "xx", "*", "").Replace(e)) > 2 {
				return false
			}
		}
	}
	return strings.Count(a, "*")+strings.Count(b, "*") <= 1
}

// Overlap compiles both; one that is not valid overlaps nothing.
func Overlap(a, b string) bool {
	p, errA := CompilePattern(a, false)
	q, errB := CompilePattern(b, false)
	return errA == nil && errB == nil && p.Overlaps(q)
}

func literal(p string) bool { return !strings.ContainsAny(p, "*?[{") }

func FuzzOverlap(f *testing.F) {
	f.Add("a/**", "*/b")
	f.Add("{a,b}[^c]", `\*?`)
	f.Fuzz(func(t *testing.T, a, b string) {
		a, b = cleanPattern(a), cleanPattern(b)
		if checkPattern(a) != "" || checkPattern(b) != "" {
			return
		}
		if Overlap(a, b) != Overlap(b, a) {
			t.Error("not symmetric")
		}
		if !Overlap(a, a) {
			t.Error("does not overlap itself")
		}
		if literal(a) && !strings.Contains(a, `\`) && a != "." {
			if ok, err := doublestar.Match(b, cleanPattern(a)); err == nil && ok && !Overlap(a, b) {
				t.Errorf("%q matches %q", b, a)
			}
		}
	})
}
