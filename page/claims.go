package page

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/history"
)

// claimShown is a live claim.
type claimShown struct {
	claim.Row
	Begin, Width float64 // the claim's time, in percent of the hours that the bars show
	Beyond       bool    // it lasts longer than they show
	Stopped      []stopShown
}

// stopShown is an agent that a claim has stopped.
type stopShown struct {
	Agent string // "" if unknown
	Doing string
	Paths []string
	At    time.Time
}

// The bars of claims show claimHours, beginning claimPast ago.
const (
	claimHours = 5
	claimPast  = time.Hour
)

type claimsShown struct {
	Claims []claimShown
	Hours  []hourShown
}

// hourShown is a full hour on the bars.
type hourShown struct {
	At    float64 // in percent
	Label string
}

// claimAnchor returns the anchor of the claim with that file in the view of claims.
func claimAnchor(file string) string { return strings.TrimSuffix(path.Base(file), ".json") }

// claimList shows the live claims by path, on a common time line, and the agents that they have stopped.
func (h *Page) claimList(v *view) error {
	if err := v.in("claims", "Claims"); err != nil {
		return err
	}
	const ended = false
	rows, err := v.p.Claims(v.ctx(), ended)
	if err != nil {
		return err
	}
	stops, err := v.p.Stops(v.ctx())
	if err != nil {
		return err
	}
	slices.SortStableFunc(rows, func(a, b claim.Row) int { return cmp.Compare(a.Pattern, b.Pattern) })
	begin := v.Now.Add(-claimPast)
	percent := func(t time.Time) float64 {
		return min(max(100*t.Sub(begin).Hours()/claimHours, 0), 100)
	}
	shown := claimsShown{Claims: make([]claimShown, len(rows))}
	for i, c := range rows {
		from, to := percent(c.Created), percent(c.Expires)
		shown.Claims[i] = claimShown{
			Row:     c,
			Begin:   from,
			Width:   max(to-from, 1),
			Beyond:  to == 100,
			Stopped: stoppedBy(stops, c.Path),
		}
	}
	for t := begin.Local().Truncate(time.Hour).Add(time.Hour); percent(t) < 100; t = t.Add(time.Hour) {
		shown.Hours = append(shown.Hours, hourShown{percent(t), t.Format("15:04")})
	}
	return v.show("claims", shown)
}

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

// release releases a claim. If another agent holds it, release tells the holder why.
func (h *Page) release(v *view) (to string, err error) {
	form := v.r.PostForm
	agent, pattern := form.Get("agent"), form.Get("path")
	if agent == v.Me {
		_, err = v.box().Release(v.ctx(), []string{pattern})
		return saying(v.at("claims"), "released", pattern, nil), err
	}
	notice, err := v.box().Free(v.ctx(), maildir.Freeing{
		Holder:  agent,
		Pattern: pattern,
		Reason:  form.Get("note"),
	})
	if err != nil || notice == nil {
		return v.at("claims"), err
	}
	return saying(v.at("claims"), "freed", notice.ID, nil), nil
}

// unrelease takes back the release of a claim of the person's own.
func (h *Page) unrelease(v *view) (to string, err error) {
	undone, err := v.box().Undo(v.ctx(), maildir.Undoing{Verb: history.VerbRelease})
	if err != nil {
		return "", err
	}
	return saying(v.at("claims"), "undone", strings.Join(undone.Patterns, " "), nil), nil
}
