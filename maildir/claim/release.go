package claim

import (
	"slices"
	"strings"

	"mailtree/maildir/glob"
)

// Release is the result of releasing claims.
type Release struct {
	Released []Row
	NotHeld  []string // requested patterns that the agent has not claimed
	Held     []Row    // the agent's remaining claims; set only if NotHeld is not empty
}

// NewRelease divides the claims that an agent holds into claims to release and claims to keep. texts contains the
// requested patterns. If texts is empty, all claims are released. For each text, the map normalized lists other
// patterns that the caller may have meant.
func NewRelease(held []Row, texts []string, normalized map[string][]string) *Release {
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
		patterns, clean := normalized[text], glob.Clean(text)
		switch as := heldAs(held, clean); {
		case len(patterns) == 0 || holds(clean):
			patterns = []string{clean}
		case as != "" && !slices.ContainsFunc(patterns, holds):
			patterns = []string{as}
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

// heldAs returns the pattern of a held claim that equals text except for backslashes, or "" if there is none. For
// example, a claim on app/[id]/** may have been created while the folder [id] existed, and the folder may be gone now.
func heldAs(held []Row, text string) string {
	unquote := func(p string) string { return strings.ReplaceAll(p, `\`, "") }
	for i := range held {
		if unquote(held[i].Pattern) == unquote(text) {
			return held[i].Pattern
		}
	}
	return ""
}
