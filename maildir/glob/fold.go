package glob

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// foldRune returns a single character that represents all cases of c. For an ASCII letter, it returns the lower-case
// letter.
func foldRune(c rune) rune {
	if c >= utf8.RuneSelf {
		for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
			if f < c {
				return foldRune(f)
			}
		}
	}
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// Fold applies foldRune to each character of s. Patterns that ignore case compare text in this form.
func Fold(s string) string { return strings.Map(foldRune, s) }

func foldIf(s string, fold bool) string {
	if fold {
		return Fold(s)
	}
	return s
}

// foldedPrefix reports whether Fold(s) begins with prefix, which must be folded.
func foldedPrefix(s, prefix string) bool {
	for i := 0; i < len(prefix) && i < len(s) && prefix[i] < utf8.RuneSelf && s[i] < utf8.RuneSelf; {
		if c := s[i]; c != prefix[i] && (c < 'A' || c > 'Z' || c+'a'-'A' != prefix[i]) {
			return false
		}
		if i++; i == len(prefix) {
			return true
		}
	}
	for prefix != "" {
		a, n := utf8.DecodeRuneInString(s)
		b, m := utf8.DecodeRuneInString(prefix)
		if n == 0 || foldRune(a) != b {
			return false
		}
		s, prefix = s[n:], prefix[m:]
	}
	return true
}

// foldedSuffix reports whether Fold(s) ends with suffix, which must be folded.
func foldedSuffix(s, suffix string) bool {
	for suffix != "" {
		a, n := utf8.DecodeLastRuneInString(s)
		b, m := utf8.DecodeLastRuneInString(suffix)
		if n == 0 || foldRune(a) != b {
			return false
		}
		s, suffix = s[:len(s)-n], suffix[:len(suffix)-m]
	}
	return true
}

// foldSpans adds the other cases of all characters in the spans.
func foldSpans(in []span) []span {
	out := slices.Clone(in)
	add := func(c rune) {
		for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
			out = append(out, span{f, f})
		}
	}
	for _, s := range in {
		if s.hi-s.lo < 256 { // the span is smaller than the table of case ranges
			for c := s.lo; c <= s.hi; c++ {
				add(c)
			}
			continue
		}
		if s.lo <= 'ß' && 'ß' <= s.hi { // the only character whose other case is missing from the table below
			add('ß')
		}
		for _, r := range unicode.CaseRanges {
			for c := max(s.lo, rune(r.Lo)); c <= min(s.hi, rune(r.Hi)); c++ {
				add(c)
			}
		}
	}
	return out
}
