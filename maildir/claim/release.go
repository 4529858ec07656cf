package claim

import (
	"slices"

	"mailtree/maildir/glob"
)

// Release is what a release did.
type Release struct {
	Released []Row
	NotHeld  []string // patterns asked for that the agent does not hold
	Held     []Row    // what it holds instead; none where it held all that was asked for
}

// NewRelease sorts the claims that an agent holds into those that are released and those that stay.
// texts are the patterns asked for, none for all of them; mended has what each text may also mean.
func NewRelease(held []Row, texts []string, mended map[string][]string) *Release {
	r := &Release{}
	if len(texts) == 0 {
		r.Released = held
		return r
	}
	holds := func(pattern string) bool {
		return slices.ContainsFunc(held, func(c Row) bool { return c.Pattern == pattern })
	}
	wanted := map[string]bool{}
	for _, text := range texts {
		patterns, clean := mended[text], glob.Clean(text)
		if len(patterns) == 0 || holds(clean) {
			patterns = []string{clean}
		}
		for _, p := range patterns {
			if !holds(p) {
				r.NotHeld = append(r.NotHeld, p)
			}
			wanted[p] = true
		}
	}
	for _, c := range held {
		if wanted[c.Pattern] {
			r.Released = append(r.Released, c)
		} else if len(r.NotHeld) > 0 {
			r.Held = append(r.Held, c)
		}
	}
	return r
}
