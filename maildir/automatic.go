package maildir

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/maildir/claim"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
)

// ClaimEdited notes that an agent has changed the files, absolute paths, and works: what lies in the
// project's folder and the agent has not claimed is claimed for it, and its automatic claims that
// end soon are renewed. A file that another agent has claimed stays that agent's. Errors:
// ErrNotFound for the agent, ErrUnavailable.
// See docs/guard.md, "Claims by editing".
func (p *Project) ClaimEdited(ctx context.Context, agent string, files []string) error {
	var paths []string
	for _, f := range files {
		path, err := p.pathInFolder(f)
		if err != nil {
			return err
		}
		if path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	fold, err := p.code.IgnoresCase(p.human)
	if err != nil {
		return refusal.Disk(err)
	}
	held, err := p.claimsOf(ctx, agent)
	if err != nil {
		return err
	}
	r := claim.Request{
		Agent:    agent,
		Patterns: claim.ForEdits(held, paths, fold, p.store.cfg.Now()),
		TTL:      claim.AutomaticTTL,
		Reason:   claim.AutomaticReason,
	}
	for len(r.Patterns) > 0 {
		res, err := p.grant(ctx, &r)
		if err != nil || len(res.Conflicts) == 0 {
			return err
		}
		r.Patterns = slices.DeleteFunc(r.Patterns, func(pattern string) bool {
			return slices.ContainsFunc(res.Conflicts, func(c claim.Conflict) bool { return c.Pattern == pattern })
		})
	}
	return nil
}

// pathInFolder is a file's path relative to the project's folder, "" where it lies elsewhere. A file
// in a linked work tree is the one of the main work tree. Errors: ErrUnavailable.
func (p *Project) pathInFolder(file string) (string, error) {
	if p.human == "" || !filepath.IsAbs(file) {
		return "", nil
	}
	place, err := repo.PlaceOf(filepath.Clean(file))
	if err != nil {
		return "", refusal.Disk(err)
	}
	for _, at := range []string{place.Path, filepath.Clean(file)} {
		if below, ok := strings.CutPrefix(at, p.human+"/"); ok {
			return below, nil
		}
	}
	return "", nil
}

// ReleaseEdited gives back the automatic claims of an agent, whose session has ended. Errors:
// ErrNotFound for the agent.
func (p *Project) ReleaseEdited(ctx context.Context, agent string) error {
	held, err := p.claimsOf(ctx, agent)
	if err != nil {
		return err
	}
	var patterns []string
	for _, c := range held {
		if c.Automatic() {
			patterns = append(patterns, c.Pattern)
		}
	}
	if len(patterns) == 0 {
		return nil
	}
	_, err = p.Release(ctx, agent, patterns)
	return err
}
