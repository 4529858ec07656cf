package format

import (
	"slices"
	"strings"
)

// Near returns the names in all that are most similar to name, at most three, most similar first. It omits names that
// differ from name in more than a third of their letters, and names that differ in at least two more letters than the
// most similar name does. If one name contains the other, they count as differing in at most one letter.
func Near(name string, all []string) []string {
	type scored struct {
		name string
		far  int
	}
	var l []scored
	low := strings.ToLower(name)
	for _, n := range all {
		other := strings.ToLower(n)
		d := distance(low, other)
		if holds(low, other) || holds(other, low) {
			d = min(d, 1)
		}
		longer := max(len(low), len(other))
		if d <= max(1, longer/3) && d < longer {
			l = append(l, scored{n, d})
		}
	}
	slices.SortStableFunc(l, func(a, b scored) int {
		if a.far != b.far {
			return a.far - b.far
		}
		return strings.Compare(a.name, b.name)
	})
	var out []string
	for _, s := range l[:min(3, len(l))] {
		if s.far <= l[0].far+1 {
			out = append(out, s.name)
		}
	}
	return out
}

// Misspelt finds the correct spelling of name in all. A misspelling may differ in case, and in one letter or, if name
// has more than six letters, two letters. Misspelt returns "" if all does not contain a correct spelling, or if name is
// itself in all.
func Misspelt(name string, all []string) string {
	if slices.Contains(all, name) {
		return ""
	}
	best, least := "", 3
	for _, n := range all {
		d := distance(strings.ToLower(name), strings.ToLower(n))
		if d < least && (d < 2 || len(name) > 6) && d < len(name)-1 {
			best, least = n, d
		}
	}
	return best
}

// holds reports whether a begins with b or, if b is longer than three bytes, contains b.
func holds(a, b string) bool {
	return b != "" && (strings.HasPrefix(a, b) || len(b) > 3 && strings.Contains(a, b))
}

// distance returns the Levenshtein distance between the first 128 bytes of a and of b. Swapping two adjacent letters
// counts as one change.
func distance(a, b string) int {
	a, b = Cut(a, 128), Cut(b, 128)
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			if row[j] = last[j-1]; a[i-1] != b[j-1] {
				row[j] = 1 + min(last[j-1], last[j], row[j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], 1+before[j-2])
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
