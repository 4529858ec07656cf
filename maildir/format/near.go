package format

import (
	"slices"
	"strings"
)

// Near returns the at most three of all names that are closest to name, nearest first, and leaves
// out what is not alike. A name that begins the other is as good as one letter off.
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
		if low != "" && other != "" && (strings.HasPrefix(other, low) || strings.HasPrefix(low, other)) {
			d = min(d, 1)
		}
		if d <= max(2, len(name)/2) && d < max(len(name), len(n)) {
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
		out = append(out, s.name)
	}
	return out
}

// distance is Levenshtein's, over at most 128 bytes of each.
func distance(a, b string) int {
	a, b = Cut(a, 128), Cut(b, 128)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diag
			if a[i-1] != b[j-1] {
				cost = 1 + min(diag, row[j], row[j-1])
			}
			diag, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
