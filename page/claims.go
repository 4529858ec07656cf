package page

import (
	"path"
	"slices"
	"strings"
	"time"

	"mailtree/maildir"
	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/working"
)

// filesShown contains the files that agents are currently editing or claiming, and the claims that have ended
// recently.
type filesShown struct {
	Files []*working.File // files with conflicts between agents come first
	More  int             // number of files that are not shown
	Ended []endedShown    // most recent first
}

// filesMost is the maximum number of files that one view shows.
const filesMost = 1000

// heldShown pairs the view with one claim on a file.
type heldShown struct {
	*view
	File  *working.File
	Claim working.Claim
}

// Held pairs the view with a claim on a file.
func (v *view) Held(f *working.File, c working.Claim) heldShown { return heldShown{v, f, c} }

// endedShown is a claim that has ended.
type endedShown struct {
	claim.Row
	At time.Time
	By string // the agent that released it; "" if it expired
}

// endedFor is how long an ended claim is shown. endedMost is the maximum number of ended claims that are shown.
const (
	endedFor  = 24 * time.Hour
	endedMost = 20
)

// claimAnchor returns the anchor, in the claims view, of the claim that is stored in the given file.
func claimAnchor(file string) string { return strings.TrimSuffix(path.Base(file), ".json") }

// claimList shows the files that agents are currently editing or claiming, and the claims that have ended recently.
func (h *Page) claimList(v *view) error {
	if err := v.in("claims", "Files & claims"); err != nil {
		return err
	}
	files, err := working.Files(v.ctx(), v.p.Claims, v.p.Edits)
	if err != nil {
		return err
	}
	shown := filesShown{Files: files[:min(len(files), filesMost)], More: max(0, len(files)-filesMost)}
	const withEnded = true
	rows, err := v.p.Claims.List(v.ctx(), withEnded)
	if err != nil {
		return err
	}
	for i := range rows {
		if e := v.ended(&rows[i]); !rows[i].Live(v.Now) && v.Now.Sub(e.At) < endedFor {
			shown.Ended = append(shown.Ended, e)
		}
	}
	slices.SortStableFunc(shown.Ended, func(a, b endedShown) int { return b.At.Compare(a.At) })
	shown.Ended = shown.Ended[:min(len(shown.Ended), endedMost)]
	for i := range shown.Ended {
		if e := &shown.Ended[i]; e.Released {
			e.By = firstOf(v.p.Claims.ReleasedBy(format.ReleasedMark(e.Path)), e.Agent)
		}
	}
	return v.show("claims", shown)
}

// ended returns a claim that has ended, along with the time at which it ended.
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

// Ask returns the subject for a message that asks for a claimed path.
func (v *view) Ask(pattern string) string { return "May I have " + pattern + "?" }

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
