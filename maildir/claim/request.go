package claim

import (
	"slices"
	"strconv"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/glob"
)

// Row is a claim as the index stores it.
type Row struct {
	format.Claim
	Path       string    `json:"file"`     // the claim's file
	Released   bool      `json:"released"` // a .released file exists next to the claim's file
	ReleasedAt time.Time `json:"released_at,omitzero"`
}

// Live reports whether the claim is neither released nor expired at now.
func (c *Row) Live(now time.Time) bool { return !c.Released && now.Before(c.Expires) }

// Request is an all-or-nothing request for claims on several patterns.
type Request struct {
	Agent    string
	Patterns []string      // patterns, or input for Normalizer
	From                   // where the caller works
	TTL      time.Duration // from 60 s to 30 days; 0 means one hour
	Shared   bool
	Reason   string
	DryRun   bool
	// Namesakes contains the paths of claims held by a different agent that has the same name as Agent. It is nil if
	// there are none.
	Namesakes map[string]bool
}

// isOf reports whether a slot's claim belongs to the requesting agent. agent is that agent's number.
func (r *Request) isOf(s *slot, agent int32) bool {
	return s.agent == agent && !r.Namesakes[s.row.Path]
}

// Result contains either the conflicts, or all the claims that were granted or renewed. If DryRun is set, it contains
// the claims that would have been granted.
type Result struct {
	Granted   []Row
	Conflicts []Conflict // the first 1,000 conflicts
	More      int        // number of conflicts not listed
	Expires   time.Time  // when the granted claims expire; zero if no claim was granted

	Alone   string         // why the claims apply only on this machine; empty if they apply on all machines that share the mail
	Renewed bool           // all granted claims are renewals
	Moved   []Moved        // texts that were resolved relative to the top, as in Normalizer.Moved
	Matches map[string]int // for each pattern, the number of matching files that Git tracks; omits patterns that took too long to count
}

// Unmatched lists the granted patterns that do not cover any file tracked by Git.
func (r *Result) Unmatched() (patterns []string) {
	for i := range r.Granted {
		if n, counted := r.Matches[r.Granted[i].Pattern]; counted && n == 0 {
			patterns = append(patterns, r.Granted[i].Pattern)
		}
	}
	return patterns
}

// Conflict is a requested pattern with an existing claim that conflicts with it.
type Conflict struct {
	Pattern string // the requested pattern
	Held    Row    // the existing claim
}

// maxListed is the maximum number of conflicts in a Result. Without this limit, 200 patterns could conflict with
// millions of claims.
const maxListed = 1000

// Conflicts lists, for each requested pattern, other agents' live claims that conflict with it. more is the number of
// conflicts beyond maxListed. If users wrote claims that conflict with each other, the earliest comes first, because
// only the earliest is valid. Call Conflicts only within Look. See docs/reference/guard.md, "Making a claim".
func (l *Leases) Conflicts(r *Request) (out []Conflict, more int, err error) {
	agent := l.number(r.Agent)
	for _, pat := range r.Patterns {
		asked, err := glob.Compile(pat, l.fold)
		if err != nil {
			return nil, 0, err // cannot happen, because the check of the request has already compiled the pattern
		}
		for i := range l.all {
			if s := &l.all[i]; !r.isOf(s, agent) && l.live(s) && (s.exclusive || !r.Shared) && l.overlaps(s, asked) {
				if len(out) == maxListed {
					more++
					continue
				}
				out = append(out, Conflict{pat, *s.row})
			}
		}
	}
	return out, more, nil
}

// Grants returns the granted claims: for each pattern, a new claim or a renewal of the agent's existing claim. If all
// granted claims are renewals, renewed is true.
func (l *Leases) Grants(r *Request, now, expires time.Time) (out []Row, renewed bool) {
	held := l.held(r)
	for _, pat := range r.Patterns {
		row := Row{Claim: format.Claim{
			Pattern:   pat,
			Agent:     r.Agent,
			Exclusive: !r.Shared,
			Reason:    r.Reason,
			Created:   now.Truncate(time.Microsecond),
			Expires:   expires,
		}}
		if old := held[pat]; old != nil {
			row.Path, row.Created = old.Path, old.Created
			if r.Reason == "" {
				row.Reason = old.Reason
			}
		} else {
			row.Path = l.freePath(pat, r.Agent)
		}
		out = append(out, row)
	}
	return out, len(held) == len(r.Patterns)
}

// held returns the claims that the request renews, by pattern. These are the agent's live claims whose patterns equal
// the requested patterns byte for byte.
func (l *Leases) held(r *Request) map[string]*Row {
	held := map[string]*Row{}
	agent := l.number(r.Agent)
	for i := range l.all {
		if s := &l.all[i]; r.isOf(s, agent) && l.live(s) && slices.Contains(r.Patterns, s.row.Pattern) && held[s.row.Pattern] == nil {
			held[s.row.Pattern] = s.row
		}
	}
	return held
}

// freePath returns the path of the file for a new claim. This is the usual path, or a similar path if a live claim
// already uses the usual path.
func (l *Leases) freePath(pattern, agent string) string {
	path := format.ClaimPath(pattern, agent, "")
	for n := 2; ; n++ {
		if c := l.byPath[path]; c == nil || !l.live(&l.all[l.place(c)]) {
			return path
		}
		path = format.ClaimPath(pattern, agent, "-"+strconv.Itoa(n))
	}
}

// End returns the time when the claim ended or will end.
func (c *Row) End() time.Time {
	if c.Released && c.ReleasedAt.Before(c.Expires) && !c.ReleasedAt.IsZero() {
		return c.ReleasedAt
	}
	return c.Expires
}
