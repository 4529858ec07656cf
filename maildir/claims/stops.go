package claims

import (
	"context"
	"slices"
	"time"

	"mailtree/maildir/claim"
)

// Stop records that an agent could not work because of claims that are still live.
type Stop struct {
	Agent string          `json:"agent"` // "" if unknown
	Doing string          `json:"doing"` // as in claim.Stopped
	At    time.Time       `json:"at"`
	By    []claim.Blocked `json:"by"`
}

// stoppedFor is how long a stopped agent is considered to be waiting.
const stoppedFor = 24 * time.Hour

// Stops lists the agents that claims have stopped within the last day, newest first. An agent is listed only if one of
// these claims is still live. For each agent, Stops lists the most recently refused commit, edit, push and claim.
func (cs *Claims) Stops(ctx context.Context) (all []Stop, err error) {
	noted := claim.ReadStopped(ctx, cs.mail.Tree)
	if len(noted) == 0 {
		return nil, nil
	}
	const ended = false
	live, err := cs.List(ctx, ended)
	if err != nil {
		return nil, err
	}
	now := cs.mail.Store.Now()
	for _, n := range noted {
		s := Stop{Agent: n.Agent, Doing: n.Doing, At: n.At}
		for _, by := range n.By {
			holds := func(c claim.Row) bool { return c.Path == by.File && !c.Created.After(n.At) } // not a later claim
			if i := slices.IndexFunc(live, holds); i >= 0 {
				s.By = append(s.By, claim.Blocked{Claim: live[i], Paths: by.Paths})
			}
		}
		if len(s.By) > 0 && now.Sub(s.At) < stoppedFor {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b Stop) int { return b.At.Compare(a.At) })
	return all, nil
}

// NoteConflicts records that a claim was refused.
func (cs *Claims) NoteConflicts(agent string, conflicts []claim.Conflict) {
	var by []claim.Blocked
	for _, c := range conflicts {
		i := slices.IndexFunc(by, func(b claim.Blocked) bool { return b.Claim.Path == c.Held.Path })
		if i < 0 {
			i, by = len(by), append(by, claim.Blocked{Claim: c.Held})
		}
		by[i].Paths = append(by[i].Paths, c.Pattern)
	}
	claim.NoteStopped(cs.mail.Tree, cs.mail.Store.Now(), agent, claim.DoingClaim, by)
}
