package claim

import (
	"slices"
	"strconv"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/glob"
)

// Row is a claim as the index keeps it.
type Row struct {
	format.Claim
	Path       string // its file
	Released   bool   // a .released file lies beside it
	ReleasedAt time.Time
}

// Live reports whether the claim holds at now.
func (c *Row) Live(now time.Time) bool { return !c.Released && now.Before(c.Expires) }

// Request asks for leases on all the patterns or none.
type Request struct {
	Agent    string
	Patterns []string      // also as Mending takes them
	Folder   string        // see Mending.Below
	TTL      time.Duration // 0: one hour; 60 s to 30 days
	Shared   bool
	Reason   string
	DryRun   bool
}

// Result is either every claim granted (or renewed, or with DryRun grantable) or the conflicts.
type Result struct {
	Granted   []Row
	Conflicts []Conflict // the first 1,000
	More      int        // conflicts that are not listed
	Expires   time.Time  // of what is granted; zero where nothing is

	Renewed bool           // all of them
	Moved   []Moved        // see Mending
	Matches map[string]int // files that Git tracks, by pattern; without those that could not be counted at once
}

// Conflict says who holds what the request asked for.
type Conflict struct {
	Pattern string // asked for
	Held    Row    // by whom and how
}

// maxListed is how many conflicts one answer lists: 200 patterns may conflict with millions of
// claims.
const maxListed = 1000

// Conflicts lists, per pattern asked for, the live claims of others that stand in its way. Of those
// made by hand the earliest comes first: it is the one that holds. more are those beyond maxListed.
// It is called within Look.
// See docs/guard.md, "Making a claim".
func (l *Leases) Conflicts(r *Request) (out []Conflict, more int, err error) {
	agent := l.number(r.Agent)
	for _, pat := range r.Patterns {
		asked, err := glob.Compile(pat, l.fold)
		if err != nil {
			return nil, 0, err // check let it pass
		}
		for i := range l.all {
			if s := &l.all[i]; s.agent != agent && l.live(s) && (s.exclusive || !r.Shared) && l.overlaps(s, asked) {
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

// Grants says what is granted: a new claim for each pattern, or the renewal of the one that is
// held. renewed says that all are held.
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

// held finds the agent's live claims on exactly these patterns, letter for letter: what is renewed.
func (l *Leases) held(r *Request) map[string]*Row {
	held := map[string]*Row{}
	agent := l.number(r.Agent)
	for i := range l.all {
		if s := &l.all[i]; s.agent == agent && l.live(s) && slices.Contains(r.Patterns, s.row.Pattern) && held[s.row.Pattern] == nil {
			held[s.row.Pattern] = s.row
		}
	}
	return held
}

// freePath is where a new claim goes: its own place, or one beside it where somebody has written
// another claim there that is live.
func (l *Leases) freePath(pattern, agent string) string {
	path := format.ClaimPath(pattern, agent, "")
	for n := 2; ; n++ {
		if c := l.byPath[path]; c == nil || !l.live(&l.all[l.place(c)]) {
			return path
		}
		path = format.ClaimPath(pattern, agent, "-"+strconv.Itoa(n))
	}
}

// End is when the claim ended or will end.
func (c *Row) End() time.Time {
	if c.Released && c.ReleasedAt.Before(c.Expires) && !c.ReleasedAt.IsZero() {
		return c.ReleasedAt
	}
	return c.Expires
}
