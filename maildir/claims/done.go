package claims

import (
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// OfDone returns the claims that an operation wrote or released, as they were in the claim files after the operation.
// It returns any error from the tree.
func (cs *Claims) OfDone(done *history.Done) (all []format.Claim, err error) {
	for _, v := range done.Changes {
		data := v.Is
		switch format.Locate(v.Path).Kind {
		case format.KindReleased:
			if v.Is == nil { // the operation removed the release mark, and its changes also include the claim file
				continue
			}
			data, _, err = cs.mail.Tree.Read(format.ClaimOfMark(v.Path), format.MaxSmall)
			if tree.FaultOf(err) == tree.FaultGone {
				return nil, &refusal.Error{What: refusal.ChangedSince, Other: format.ClaimOfMark(v.Path), Why: done.Verb}
			}
			if err != nil {
				return nil, err
			}
		case format.KindClaim:
		default:
			continue
		}
		c, err := format.ParseClaim(data)
		if err != nil {
			return nil, &refusal.Error{What: refusal.ChangedSince, Other: v.Path, Why: done.Verb}
		}
		all = append(all, c)
	}
	return all, nil
}

// NeedFree returns an error if a claim cannot be restored because another agent has claimed the same paths or because
// the lease has expired.
func (cs *Claims) NeedFree(g *writer.Group, claims []format.Claim) error {
	return cs.Look(g.Ctx, func(l *claim.Leases) error {
		for _, c := range claims {
			if !g.Now.Before(c.Expires) {
				return &refusal.Error{
					What: refusal.Conflict("The claim on {name} would have expired by now (at {why}), so the release cannot " +
						"be undone: claim the path again. {undo something else}"),
					Name: c.Pattern,
					Why:  c.Expires.Format(time.RFC3339),
				}
			}
			found, _, err := l.Conflicts(&claim.Request{Agent: c.Agent, Patterns: []string{c.Pattern}, Shared: !c.Exclusive})
			if err != nil {
				return err
			}
			if len(found) > 0 {
				return &refusal.Error{What: refusal.ClaimTaken, Name: c.Pattern, Other: found[0].Held.Agent}
			}
		}
		return nil
	})
}
