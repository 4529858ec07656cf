package claim

import (
	"slices"
	"strings"
	"time"

	"mailtree/maildir/glob"
)

// Matches counts the names that each pattern covers. names must be sorted by bytes. The result does not contain
// patterns that are invalid or that could not be counted before the deadline.
func Matches(names, patterns []string, fold bool, deadline time.Time) map[string]int {
	counts := map[string]int{}
	for _, text := range patterns {
		p, err := glob.Compile(text, fold)
		if err != nil {
			continue
		}
		if n, ok := countCovered(names, p, deadline); ok {
			counts[text] = n
		}
	}
	return counts
}

// lookEvery is the number of names between two checks of the deadline. Checking that many names takes about 50 µs.
const lookEvery = 1024

func countCovered(names []string, p *glob.Pattern, deadline time.Time) (count int, ok bool) {
	prefix := p.Prefix()
	from, _ := slices.BinarySearch(names, prefix)
	for i, name := range names[from:] {
		if i%lookEvery == 0 && time.Now().After(deadline) {
			return 0, false
		}
		if !strings.HasPrefix(name, prefix) {
			break
		}
		if p.Covers(name) {
			count++
		}
	}
	return count, true
}
