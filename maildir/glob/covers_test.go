package glob

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// exact returns a pattern that matches only one path, and nothing below it.
func exact(path string, fold bool) *Pattern {
	p := &Pattern{prefix: foldIf(path, fold), fold: fold}
	var elems []element
	for e := range strings.SplitSeq(p.prefix, "/") {
		elems = append(elems, element{text: e})
	}
	p.alts = [][]element{elems}
	return p
}

// escaped returns the path as a pattern, with special characters escaped.
func escaped(path string) string {
	var b strings.Builder
	for _, c := range path {
		if strings.ContainsRune(`*?[]{}\,-^!`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// TestCovers checks that a pattern covers a path if and only if it overlaps the path's exact pattern. It also checks
// that a pattern that covers a path overlaps the path written as a pattern.
func TestCovers(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	from := func(pieces []string, n int) string {
		s := ""
		for range 1 + rng.IntN(n) {
			s += pieces[rng.IntN(len(pieces))]
		}
		return s
	}
	covered, tried := 0, 0
	for range 60000 {
		pattern := from([]string{"a", "B", "k", "/", "/", "*", "**", "?", "[a-c]", "[^a]", "{a,B}", "{a/b,**}", `\*`, `\[`, "é", "{", "}", ","}, 6)
		path := strings.Trim(from([]string{"a", "A", "b", "K", "\u212a", "/", "*", "[", `\`, "{", "É", "a/b"}, 5), "/")
		for _, fold := range []bool{false, true} {
			p, err := Compile(Clean(pattern), fold)
			if err != nil || path == "" || strings.Contains(path, "//") {
				continue
			}
			tried++
			got := p.Covers(path)
			if want := p.Overlaps(exact(path, fold)); got != want {
				t.Fatalf("%s covers %s (fold %v): %v, but overlaps: %v", pattern, path, fold, got, want)
			}
			below, err := Compile(escaped(path), fold)
			if err != nil || got && !p.Overlaps(below) {
				t.Fatalf("%s covers %s (fold %v), but does not overlap %s: %v", pattern, path, fold, escaped(path), err)
			}
			if got {
				covered++
			}
		}
	}
	if covered < tried/50 || covered > tried/2 {
		t.Errorf("only %d of %d are covered: the sample is not meaningful", covered, tried)
	}
}
