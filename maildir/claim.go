package maildir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Limits of a claim. See docs/guard.md, "Making a claim".
const (
	defaultTTL = time.Hour
	MinTTL     = time.Minute
	MaxTTL     = format.MaxLease
	keepClaims = 7 * 24 * time.Hour // how long the file of a released or expired claim is kept

	maxCounting = time.Second // how long a claim may spend counting matches
)

// Claim grants or renews leases on all the patterns, or on none. A conflict is an answer, not an error. It
// returns ErrInvalid, and ErrNotFound for the agent. See docs/guard.md, "Making a claim".
func (b *Box) Claim(ctx context.Context, r claim.Request) (*claim.Result, error) {
	r.Agent = b.agent
	moved, err := b.p.checkClaim(&r)
	if err != nil {
		return nil, err
	}
	grant := b.grant
	if b.p.shared.isOn() {
		grant = b.grantShared
	}
	res, err := grant(ctx, &r)
	if err != nil {
		return nil, err
	}
	res.Moved = moved
	if len(res.Conflicts) > 0 && !r.DryRun {
		b.p.noteConflicts(b.agent, res.Conflicts)
	}
	if len(res.Granted) > 0 {
		res.Matches = b.p.matches(r.WorkDir, r.Patterns)
	}
	return res, nil
}

// grant is Claim for a request with clean patterns within the limits.
func (b *Box) grant(ctx context.Context, r *claim.Request) (*claim.Result, error) {
	var res *claim.Result
	tx := &writer.Tx{Op: writer.Op{Verb: "claim", Agent: b.agent}, Facts: []string{claimsFact}, Sure: true}
	tx.Plan = func(g *writer.Group) error {
		res = &claim.Result{}
		if err := b.p.needAgent(g.Ctx, refusal.Agent, b.agent); err != nil {
			return err
		}
		err := b.p.lookAtClaims(g.Ctx, func(l *claim.Leases) (err error) {
			if res.Conflicts, res.More, err = l.Conflicts(r); len(res.Conflicts) == 0 {
				res.Expires = g.Now.Add(r.TTL).Truncate(time.Microsecond)
				res.Granted, res.Renewed = l.Grants(r, g.Now, res.Expires)
			}
			return err
		})
		if err != nil || r.DryRun || len(res.Conflicts) > 0 {
			return err
		}
		return b.p.planClaims(g, tx, res, r)
	}
	if err := b.perform(ctx, tx); err != nil {
		return nil, err
	}
	return res, nil
}

// matches counts, by pattern, the files that Git tracks in the code base; for a caller who works in a linked
// work tree, those of that work tree. It stops after maxCounting.
func (p *Project) matches(workDir string, patterns []string) map[string]int {
	deadline := time.Now().Add(maxCounting)
	fold, err := p.code.IgnoresCase(p.human)
	if err != nil {
		return nil
	}
	linked, err := repo.LinkedWorkTree(workDir, p.human)
	if err != nil {
		return nil
	}
	names, ok := p.store.tracked.Below(cmp.Or(linked, p.human), deadline)
	if !ok {
		return nil
	}
	return claim.Matches(names, patterns, fold, deadline)
}

// checkClaim mends the patterns and checks the request against the limits. moved are the patterns that were
// found below the request's folder.
func (p *Project) checkClaim(r *claim.Request) (moved []claim.Moved, err error) {
	if r.TTL == 0 {
		r.TTL = defaultTTL
	}
	switch {
	case len(r.Patterns) == 0:
		return nil, &Error{What: refusal.NoPaths, Field: refusal.Paths}
	case len(r.Patterns) > claim.MaxPatterns:
		return nil, refusal.Over(refusal.TooManyPaths, refusal.Paths, len(r.Patterns), claim.MaxPatterns)
	case r.TTL < MinTTL || r.TTL > MaxTTL:
		return nil, &Error{
			What:  refusal.Invalid("A lease of {=name} {arg} is out of range: 60 seconds to 30 days (2592000)."),
			Field: refusal.Lease,
			Name:  r.TTL.String(),
		}
	}
	if err := checkText(refusal.Reason, r.Reason, 1024); err != nil {
		return nil, err
	}
	err = p.mending(r.From, func(m *claim.Mending) (err error) {
		r.Patterns, err = m.Patterns(r.Patterns)
		moved = m.Moved
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(r.Patterns) == 0:
		return nil, &Error{What: refusal.NoPaths, Field: refusal.Paths}
	case len(r.Patterns) > claim.MaxPatterns:
		return nil, refusal.Over(refusal.TooManyPaths, refusal.Paths, len(r.Patterns), claim.MaxPatterns)
	}
	return moved, nil
}

// mending calls f with a Mending for the project's code base and the place of the caller. It returns f's
// error, and ErrUnavailable.
func (p *Project) mending(from claim.From, f func(m *claim.Mending) error) error {
	err := repo.Visit(p.human, from.WorkDir, func(v *repo.View) error {
		return f(&claim.Mending{Top: p.human, Home: p.store.cfg.Scope.Home, CodeBase: v, Below: from.Folder})
	})
	return refusal.Disk(err)
}

// planClaims plans the files of the granted claims.
func (p *Project) planClaims(g *writer.Group, tx *writer.Tx, res *claim.Result, r *claim.Request) error {
	for _, row := range res.Granted {
		if err := p.planClaim(g, tx, row); err != nil {
			return err
		}
	}
	if res.Renewed {
		tx.Verb = "renew"
	}
	mode := "exclusive"
	if r.Shared {
		mode = "shared"
	}
	tx.Summary = fmt.Sprintf("%s %s %s", r.Agent, mode, strings.Join(r.Patterns, ", "))
	return nil
}

// planClaim plans the claim's file. It replaces an older file of the same agent and pattern and keeps its
// unknown keys.
func (p *Project) planClaim(g *writer.Group, tx *writer.Tx, c claim.Row) error {
	old, _, err := p.Tree.Read(c.Path, format.MaxSmall)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		tx.Create(c.Path, format.FormatClaim(c.Claim, nil))
		return g.Remove(tx, format.ReleasedMark(c.Path))
	case tree.FaultOf(err) == tree.FaultMachine:
		return err
	case err != nil:
		return &Error{
			What:  refusal.Conflict("The claim file {=other} is in the way and cannot be read ({why}): remove it."),
			Other: c.Path,
			Why:   tree.PlainFileError(err),
		}
	}
	if err := g.Replace(tx, c.Path, format.FormatClaim(c.Claim, old)); err != nil {
		return err
	}
	return g.Remove(tx, format.ReleasedMark(c.Path))
}

// Release releases the agent's live claims on exactly these patterns, or all its claims if patterns is
// empty. A pattern that the agent does not hold is no error. It returns ErrNotFound for the agent.
func (b *Box) Release(ctx context.Context, patterns []string) (*claim.Release, error) {
	return b.ReleaseFrom(ctx, claim.From{}, patterns)
}

// ReleaseFrom is Release for patterns in the form that Claim takes, from a caller at the given place. Errors
// are as for Release.
func (b *Box) ReleaseFrom(ctx context.Context, from claim.From, patterns []string) (*claim.Release, error) {
	var res *claim.Release
	tx := &writer.Tx{Op: writer.Op{Verb: history.VerbRelease, Agent: b.agent}, Facts: []string{claimsFact}, Sure: true}
	mended := map[string][]string{}
	err := b.p.mending(from, func(m *claim.Mending) error {
		for _, pat := range patterns {
			mended[pat], _ = m.Patterns([]string{pat}) // none if it could not be claimed
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	tx.Plan = func(g *writer.Group) error {
		if err := b.p.needAgent(g.Ctx, refusal.Agent, b.agent); err != nil {
			return err
		}
		held, err := b.p.claimsOf(g.Ctx, b.agent)
		if err != nil {
			return err
		}
		res = claim.NewRelease(held, patterns, mended)
		tx.Summary, err = b.agent+" "+listed(res.Released), b.p.planRelease(g, tx, res.Released, format.FormatMark(g.Now))
		return err
	}
	if err := b.perform(ctx, tx); err != nil {
		return nil, err
	}
	if a, err := b.p.store.index.Agent(ctx, b.p.Slug, b.agent); err == nil && a != nil && b.p.elsewhere(a) {
		_ = b.p.meetClaims(ctx) // or the agent may renew what was released; else the next round says so
	}
	return res, nil
}

// planRelease plans the same mark beside each of these claims, which releases them.
func (p *Project) planRelease(g *writer.Group, tx *writer.Tx, claims []claim.Row, mark []byte) error {
	for i := range claims {
		c := &claims[i]
		if err := p.freeFor(g, format.ReleasedMark(c.Path)); err != nil {
			return err
		}
		c.Released, c.ReleasedAt = true, g.Now.Truncate(time.Microsecond)
		tx.Create(format.ReleasedMark(c.Path), mark)
	}
	return nil
}

// listed returns the patterns of claims on one line.
func listed(claims []claim.Row) string {
	names := make([]string, len(claims))
	for i := range claims {
		names[i] = claims[i].Pattern
	}
	return strings.Join(names, ", ")
}

// Claims lists live claims, and with all also released and expired ones, by created, agent, path. It
// returns ErrUnavailable.
func (p *Project) Claims(ctx context.Context, all bool) ([]claim.Row, error) {
	return p.selectClaims(ctx, func(_ *claim.Row, live bool) bool { return all || live })
}

// claimsOf lists the agent's live claims, without those of a namesake on a machine whose mail has not been met.
func (p *Project) claimsOf(ctx context.Context, agent string) ([]claim.Row, error) {
	a, err := p.store.index.Agent(ctx, p.Slug, agent)
	if err != nil {
		return nil, err
	}
	return p.selectClaims(ctx, func(c *claim.Row, live bool) bool {
		return live && c.Agent == agent && !p.shared.isNamesakes(c.Path, a)
	})
}

func (p *Project) selectClaims(ctx context.Context, pass func(c *claim.Row, live bool) bool) (rows []claim.Row, err error) {
	err = p.lookAtClaims(ctx, func(l *claim.Leases) error {
		rows = l.Select(pass)
		return nil
	})
	return rows, err
}

// lookAtClaims calls f with the project's claims as the index has them now. Looks run one at a time, so f
// must not wait for files. It returns f's error, and ErrUnavailable, in which case the results of f are
// void.
func (p *Project) lookAtClaims(ctx context.Context, f func(l *claim.Leases) error) error {
	fold, err := p.code.IgnoresCase(p.human)
	if err != nil {
		return refusal.Disk(err)
	}
	return p.lookAt(ctx, p.leases, p.store.index, fold, f)
}

// lookAt is lookAtClaims for the leases of a source. fold ignores case.
func (p *Project) lookAt(ctx context.Context, leases *claim.Leases, of claim.Source, fold bool, f func(l *claim.Leases) error) error {
	isFile, done := p.code.Look(p.human)
	view := claim.View{Now: p.store.cfg.Now(), Fold: fold, IsFile: isFile}
	err := leases.Look(ctx, of, p.Slug, view, f)
	if fault := done(); err == nil {
		err = refusal.Disk(fault)
	}
	return err
}

// sweepClaims removes the files of claims that ended a week ago; Git keeps their history. A file stays if
// someone has made a live claim of it again that the index does not know yet. See docs/tree.md, "A claim".
func (p *Project) sweepClaims() *writer.Tx {
	tx := &writer.Tx{Op: writer.Op{Verb: "sweep", Summary: "claims that ended a week ago"}, Facts: []string{claimsFact}}
	tx.Plan = func(g *writer.Group) error {
		old, err := p.selectClaims(g.Ctx, func(c *claim.Row, _ bool) bool { return g.Now.Sub(c.End()) >= keepClaims })
		if err != nil {
			return err
		}
		for i := range old {
			c, before := &old[i], len(tx.Writes)
			if p.shared.isListed(c.Path) { // its end by the wall clock says nothing
				continue
			}
			if before >= 2*writer.MaxGroup {
				break
			}
			if err := g.Remove(tx, c.Path, format.ReleasedMark(c.Path)); err != nil {
				tx.Writes = nil
				return nil // leave it alone: a file that cannot be committed must not be removed
			}
			if !p.stands(c) { // checked now; publish notices later changes
				tx.Writes = tx.Writes[:before]
			}
		}
		return nil
	}
	return tx
}

// stands reports whether the claim's files still have the end and the release that the index has.
func (p *Project) stands(c *claim.Row) bool {
	data, _, err := p.Tree.Read(c.Path, format.MaxSmall)
	if err != nil {
		return false
	}
	now, err := format.ParseClaim(data)
	if err != nil || now.Expires.UnixMicro() != c.Expires.UnixMicro() {
		return false
	}
	_, err = p.Tree.Stat(format.ReleasedMark(c.Path))
	return tree.FaultOf(err) != tree.FaultMachine && c.Released == (err == nil)
}
