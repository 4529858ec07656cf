package maildir

import (
	"context"

	"mailtree/maildir/claim"
	"mailtree/maildir/claims"
	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// Claim grants or renews leases on all the patterns, or on none of them. A conflict is a result, not an error. Claim
// returns ErrInvalid for an invalid request, and ErrNotFound if the agent does not exist. See docs/reference/guard.md,
// "Making a claim".
func (b *Box) Claim(ctx context.Context, r claim.Request) (*claim.Result, error) {
	r.Agent = b.agent
	moved, err := b.p.Claims.Check(&r)
	if err != nil {
		return nil, err
	}
	grant := b.p.Claims.Grant
	if b.p.mail.IsShared() {
		grant = b.p.Sync.Grant
	}
	res, err := grant(ctx, &r)
	if err != nil {
		return nil, err
	}
	res.Moved = moved
	if len(res.Conflicts) > 0 && !r.DryRun {
		b.p.Claims.NoteConflicts(b.agent, res.Conflicts)
	}
	if len(res.Granted) > 0 {
		res.Matches = b.p.Claims.Matches(r.WorkDir, r.Patterns)
	}
	return res, nil
}

// Release releases the agent's live claims on exactly these patterns, or all its claims if patterns is empty. It is
// not an error if the agent has not claimed a pattern. Release returns ErrNotFound if the agent does not exist.
func (b *Box) Release(ctx context.Context, patterns []string) (*claim.Release, error) {
	return b.ReleaseFrom(ctx, claim.From{}, patterns)
}

// ReleaseFrom is like Release, but accepts patterns in the same forms as Claim does. The from argument describes the
// caller. ReleaseFrom returns any error from Release.
func (b *Box) ReleaseFrom(ctx context.Context, from claim.From, patterns []string) (*claim.Release, error) {
	var res *claim.Release
	tx := &writer.Tx{Op: writer.Op{Verb: history.VerbRelease, Agent: b.agent}, Facts: []string{core.ClaimsFact}, Sure: true}
	normalized := map[string][]string{}
	err := b.p.Claims.Normalize(from, func(m *claim.Normalizer) error {
		for _, pat := range patterns {
			normalized[pat], _ = m.Patterns([]string{pat}) // nil if Claim would reject the pattern
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	tx.Plan = func(g *writer.Group) error {
		if err := b.p.mail.NeedAgent(g.Ctx, refusal.Agent, b.agent); err != nil {
			return err
		}
		held, err := b.p.Claims.Of(g.Ctx, b.agent)
		if err != nil {
			return err
		}
		res = claim.NewRelease(held, patterns, normalized)
		tx.Summary, err = b.agent+" "+claims.Listed(res.Released), b.p.Claims.PlanRelease(g, tx, res.Released, format.FormatMark(g.Now))
		return err
	}
	if err := b.perform(ctx, tx); err != nil {
		return nil, err
	}
	if a, err := b.p.mail.Store.Index.Agent(ctx, b.p.mail.Slug, b.agent); err == nil && a != nil && b.p.mail.Elsewhere(a) {
		// Without this, the agent's machine would renew the claims. If SyncClaims fails, the next sync round tries
		// again.
		_ = b.p.Sync.SyncClaims(ctx)
	}
	return res, nil
}
