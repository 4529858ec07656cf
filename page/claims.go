package page

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
)

// claimShown is a live claim as shown in a view.
type claimShown struct {
	claim.Row
	Stopped []stopShown
}

// stopShown is an agent that was stopped by a claim.
type stopShown struct {
	Agent string // "" if unknown
	Doing string
	Paths []string
	At    time.Time
}

// holderShown is an agent and its live claims.
type holderShown struct {
	Agent  string
	Claims []claimShown // sorted by path, but claims that have stopped an agent come first
	stops  int
}

// claimsShown contains the live claims, grouped by holder, and the claims that have ended recently.
type claimsShown struct {
	Holders []*holderShown // sorted by name, but holders that stop the most agents come first
	Ended   []endedShown   // most recent first
}

// endedShown is a claim that has ended.
type endedShown struct {
	claim.Row
	At time.Time
	By string // the agent that released it; "" if it expired
}

// Claims that have ended are shown for endedFor, but no more than endedMost of them.
const (
	endedFor  = 24 * time.Hour
	endedMost = 20
)

// claimAnchor returns the anchor that the claim in the given file has in the view of claims.
func claimAnchor(file string) string { return strings.TrimSuffix(path.Base(file), ".json") }

// claimList shows the live claims, along with the agents that they have stopped, and the claims that have ended
// recently.
func (h *Page) claimList(v *view) error {
	if err := v.in("claims", "Files & claims"); err != nil {
		return err
	}
	const withEnded = true
	rows, err := v.p.Claims.List(v.ctx(), withEnded)
	if err != nil {
		return err
	}
	stops, err := v.p.Claims.Stops(v.ctx())
	if err != nil {
		return err
	}
	var shown claimsShown
	for _, c := range rows {
		if c.Live(v.Now) {
			shown.add(claimShown{c, stoppedBy(stops, c.Path)})
		} else if e := v.ended(&c); v.Now.Sub(e.At) < endedFor {
			shown.Ended = append(shown.Ended, e)
		}
	}
	shown.sort()
	for i := range shown.Ended {
		if e := &shown.Ended[i]; e.Released {
			e.By = firstOf(v.p.Claims.ReleasedBy(format.ReleasedMark(e.Path)), e.Agent)
		}
	}
	return v.show("claims", shown)
}

// ended returns a claim along with the time when it ended.
func (v *view) ended(c *claim.Row) endedShown {
	at := c.Expires
	if c.Released && !c.ReleasedAt.IsZero() {
		at = c.ReleasedAt
	}
	if at.After(v.Now) {
		at = v.Now
	}
	return endedShown{Row: *c, At: at}
}

// add adds a live claim to its holder's list.
func (s *claimsShown) add(c claimShown) {
	i := slices.IndexFunc(s.Holders, func(h *holderShown) bool { return h.Agent == c.Agent })
	if i < 0 {
		i, s.Holders = len(s.Holders), append(s.Holders, &holderShown{Agent: c.Agent})
	}
	h := s.Holders[i]
	h.Claims, h.stops = append(h.Claims, c), h.stops+len(c.Stopped)
}

// sort sorts the lists and shortens the list of ended claims.
func (s *claimsShown) sort() {
	slices.SortFunc(s.Holders, func(a, b *holderShown) int { return cmp.Or(b.stops-a.stops, cmp.Compare(a.Agent, b.Agent)) })
	for _, h := range s.Holders {
		slices.SortStableFunc(h.Claims, func(a, b claimShown) int {
			return cmp.Or(len(b.Stopped)-len(a.Stopped), cmp.Compare(a.Pattern, b.Pattern))
		})
	}
	slices.SortStableFunc(s.Ended, func(a, b endedShown) int { return b.At.Compare(a.At) })
	s.Ended = s.Ended[:min(len(s.Ended), endedMost)]
}

// Ask returns the subject for a message that asks for a claimed path.
func (v *view) Ask(pattern string) string { return "May I have " + pattern + "?" }

func stoppedBy(stops []maildir.Stop, file string) (all []stopShown) {
	for _, s := range stops {
		for _, by := range s.By {
			if by.Claim.Path == file {
				all = append(all, stopShown{s.Agent, s.Doing, by.Paths, s.At})
			}
		}
	}
	return all
}

// release releases a claim. If the claim belongs to another agent, release notifies that agent.
func (h *Page) release(v *view) (to string, err error) {
	form := v.r.PostForm
	agent, pattern := form.Get("agent"), form.Get("path")
	if agent == v.Me {
		_, err = v.box().Release(v.ctx(), []string{pattern})
		return v.saying(v.at("claims"), "released", pattern, nil), err
	}
	notice, err := v.box().Free(v.ctx(), maildir.Freeing{Holder: agent, Pattern: pattern})
	if err != nil || notice == nil {
		return v.at("claims"), err
	}
	return v.saying(v.at("claims"), "freed", notice.ID, nil), nil
}

// unrelease undoes the release of one of the user's own claims.
func (h *Page) unrelease(v *view) (to string, err error) {
	undone, err := v.box().Undo(v.ctx(), maildir.Undoing{Verb: history.VerbRelease})
	if err != nil {
		return "", err
	}
	return v.saying(v.at("claims"), "undone", strings.Join(undone.Patterns, " "), nil), nil
}
