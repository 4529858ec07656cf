package maildir

import (
	"slices"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// claimsOfDone returns the claims of an operation, as their files are after it. It returns the errors of
// the tree.
func (p *Project) claimsOfDone(done *history.Done) (all []format.Claim, err error) {
	for _, v := range done.Changes {
		data := v.Is
		switch format.Locate(v.Path).Kind {
		case format.KindReleased:
			if v.Is == nil { // the claim's own file is among the changes
				continue
			}
			data, _, err = p.Tree.Read(format.ClaimOfMark(v.Path), format.MaxSmall)
			if tree.FaultOf(err) == tree.FaultGone {
				return nil, &Error{What: refusal.ChangedSince, Other: format.ClaimOfMark(v.Path), Why: done.Verb}
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
			return nil, &Error{What: refusal.ChangedSince, Other: v.Path, Why: done.Verb}
		}
		all = append(all, c)
	}
	return all, nil
}

// planUnclaiming plans to restore the claims as they were before an operation: released, with the earlier
// lease, or claimed again. It withdraws the message that told the holder of a release. It returns
// ErrConflict if a released claim's paths now belong to another agent or its lease would be over.
func (b *Box) planUnclaiming(g *writer.Group, tx *writer.Tx, undone *Undone) error {
	if undone.ID != "" {
		if err := b.planWithdrawal(g, tx, undone); err != nil {
			return err
		}
	}
	claims, err := b.p.claimsOfDone(undone.done)
	if err != nil {
		return err
	}
	for _, c := range claims {
		undone.Patterns = append(undone.Patterns, c.Pattern)
	}
	slices.Sort(undone.Patterns)
	if undone.done.Verb == history.VerbRelease {
		if err := b.p.needFree(g, claims); err != nil {
			return err
		}
	}
	return b.p.planRestore(g, tx, undone.done, undoable[undone.done.Verb], refusal.ChangedSince)
}

// needFree refuses claims that cannot hold now, because another agent has claimed the paths or the lease is
// over.
func (p *Project) needFree(g *writer.Group, claims []format.Claim) error {
	return p.lookAtClaims(g.Ctx, func(l *claim.Leases) error {
		for _, c := range claims {
			if !g.Now.Before(c.Expires) {
				return &Error{
					What: refusal.Conflict("The claim on {name} would be over since {why}, so that the release is not undone: claim it again. " +
						"{undo something else}"),
					Name: c.Pattern,
					Why:  c.Expires.Format(time.RFC3339),
				}
			}
			found, _, err := l.Conflicts(&claim.Request{Agent: c.Agent, Patterns: []string{c.Pattern}, Shared: !c.Exclusive})
			if err != nil {
				return err
			}
			if len(found) > 0 {
				return &Error{What: refusal.ClaimTaken, Name: c.Pattern, Other: found[0].Held.Agent}
			}
		}
		return nil
	})
}
