package maildir

import (
	"slices"

	"mailtree/maildir/history"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// planUnclaiming plans to restore claims to their state before an operation. This can mean releasing the claims,
// restoring the earlier lease, or claiming the paths again. planUnclaiming also plans to withdraw the message that
// notified the holder about a release. It returns ErrConflict if another agent now holds a released claim's paths, or
// if the restored lease would already have expired.
func (b *Box) planUnclaiming(g *writer.Group, tx *writer.Tx, undone *Undone) error {
	if undone.ID != "" {
		if err := b.planWithdrawal(g, tx, undone); err != nil {
			return err
		}
	}
	claims, err := b.p.Claims.OfDone(undone.done)
	if err != nil {
		return err
	}
	for _, c := range claims {
		undone.Patterns = append(undone.Patterns, c.Pattern)
	}
	slices.Sort(undone.Patterns)
	if undone.done.Verb == history.VerbRelease {
		if err := b.p.Claims.NeedFree(g, claims); err != nil {
			return err
		}
	}
	return b.p.planRestore(g, tx, undone.done, undoable[undone.done.Verb], refusal.ChangedSince)
}
