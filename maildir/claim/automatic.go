package claim

import (
	"slices"
	"time"

	"mailtree/maildir/glob"
)

// An automatic claim is made for an agent because it changes a file, and renewed while the agent
// works. Its reason tells it from those that were asked for.
// See docs/guard.md, "Claims by editing".
const (
	AutomaticReason = "made automatically by an edit"
	AutomaticTTL    = 10 * time.Minute
	renewedFrom     = 5 * time.Minute // renewed when less is left, so that not every edit is a commit
)

// Automatic reports whether the claim was made for an edit.
func (c *Row) Automatic() bool { return c.Reason == AutomaticReason }

// ForEdits lists the patterns that are to be claimed, or to be renewed, for an agent that has changed
// the files at paths, relative to the code repository's root: the files that none of its live claims
// held covers, and its automatic claims that end soon. There are at most MaxPatterns.
func ForEdits(held []Row, paths []string, fold bool, now time.Time) (patterns []string) {
	var covers []*glob.Pattern
	for _, c := range held {
		if c.Automatic() && c.Expires.Sub(now) < renewedFrom {
			patterns = append(patterns, c.Pattern)
		}
		if p, err := glob.Compile(c.Pattern, fold); err == nil && c.Exclusive {
			covers = append(covers, p)
		}
	}
	for _, path := range paths {
		covered := slices.ContainsFunc(covers, func(p *glob.Pattern) bool { return p.Covers(path) })
		if pattern := quote(path); !covered && !slices.Contains(patterns, pattern) {
			patterns = append(patterns, pattern)
		}
	}
	return patterns[:min(len(patterns), MaxPatterns)]
}
