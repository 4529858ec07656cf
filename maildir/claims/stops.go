package claims

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mailtree/maildir/claim"
)

// Stop records that claims blocked an agent's work at a certain time. It lists only the claims that are still live.
type Stop struct {
	Project string          `json:"project,omitempty"` // the project's slug; set only in a list of all projects
	Agent   string          `json:"agent"`             // empty if unknown
	Doing   string          `json:"doing"`             // as in claim.Stopped
	At      time.Time       `json:"at"`
	By      []claim.Blocked `json:"by"`
}

// Stops lists the agents that were blocked within the last day by claims that are still live, newest first. For each
// agent and claim, it lists the newest refusal of each kind (Doing).
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
		holds := func(c claim.Row) bool { return c.Path == n.File && !c.Created.After(n.At) } // not a newer claim in the same file
		i := slices.IndexFunc(live, holds)
		if i < 0 || now.Sub(n.At) >= claim.StoppedFor {
			continue
		}
		by := claim.Blocked{Claim: live[i], Paths: n.Paths}
		same := func(s Stop) bool { return s.Agent == n.Agent && s.Doing == n.Doing && s.At.Equal(n.At) }
		if at := slices.IndexFunc(all, same); at >= 0 {
			all[at].By = append(all[at].By, by)
			slices.SortFunc(all[at].By, func(a, b claim.Blocked) int { return cmp.Compare(a.Claim.Pattern, b.Claim.Pattern) })
			continue
		}
		all = append(all, Stop{Agent: n.Agent, Doing: n.Doing, At: n.At, By: []claim.Blocked{by}})
	}
	slices.SortStableFunc(all, func(a, b Stop) int { return b.At.Compare(a.At) })
	return all, nil
}

// NoteConflicts records that a claim was refused because of conflicts.
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
