package claims

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/repo"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// Limits for claims. See docs/reference/guard.md, "Making a claim".
const (
	defaultTTL = time.Hour
	MinTTL     = time.Minute
	MaxTTL     = format.MaxLease
	keepClaims = 7 * 24 * time.Hour // how long the file of a released or expired claim is kept

	maxCounting = time.Second // maximum time that a claim call may spend counting matches
)

// Elsewhere gives access to the claims of other machines.
type Elsewhere interface {
	// IsListed reports whether the machines' shared list contains, or may contain, the claim in the file at path.
	IsListed(path string) bool
	// IsNamesakes reports whether, according to the list, the claim belongs to a different agent with the same name.
	IsNamesakes(path string, agent *index.AgentRow) bool
}

// Claims reads and changes a project's claims, which are stored in claim files. It is safe for concurrent use.
type Claims struct {
	Elsewhere Elsewhere // implemented by package peers; must be set before the first use

	mail   *core.Mail
	leases *claim.Leases
	code   repo.Codebase
}

// New returns the claims of a project.
func New(mail *core.Mail) *Claims { return &Claims{mail: mail, leases: claim.NewLeases()} }

// Changed records that a claim's file or its release mark has changed.
func (cs *Claims) Changed(path string, kind format.Kind) { cs.leases.Changed(path, kind) }

// Grant creates or renews claims on this machine for a request that has passed Check. See maildir.Box.Claim.
func (cs *Claims) Grant(ctx context.Context, r *claim.Request) (*claim.Result, error) {
	var res *claim.Result
	tx := &writer.Tx{Op: writer.Op{Verb: history.VerbClaim, Agent: r.Agent}, Facts: []string{core.ClaimsFact}, Sure: true}
	tx.Plan = func(g *writer.Group) error {
		res = &claim.Result{}
		if err := cs.mail.NeedAgent(g.Ctx, refusal.Agent, r.Agent); err != nil {
			return err
		}
		err := cs.Look(g.Ctx, func(l *claim.Leases) (err error) {
			if res.Conflicts, res.More, err = l.Conflicts(r); len(res.Conflicts) == 0 {
				res.Expires = g.Now.Add(r.TTL).Truncate(time.Microsecond)
				res.Granted, res.Renewed = l.Grants(r, g.Now, res.Expires)
			}
			return err
		})
		if err != nil || r.DryRun || len(res.Conflicts) > 0 {
			return err
		}
		return cs.PlanAll(g, tx, res, r)
	}
	if err := cs.mail.Perform(ctx, r.Agent, tx); err != nil {
		return nil, err
	}
	return res, nil
}

// Matches counts, for each pattern, the matching files that Git tracks in the code base. If the caller works in another
// folder of the code base, such as a linked worktree, Matches counts the files there. It stops after maxCounting.
func (cs *Claims) Matches(workDir string, patterns []string) map[string]int {
	deadline := time.Now().Add(maxCounting)
	fold, err := cs.code.IgnoresCase(cs.mail.HumanKey())
	if err != nil {
		return nil
	}
	places, err := cs.mail.Store.Places()
	if err != nil {
		return nil
	}
	other, err := places.Around(workDir, cs.mail.HumanKey())
	if err != nil {
		return nil
	}
	names, ok := cs.mail.Store.Tracked.Below(cmp.Or(other, cs.mail.HumanKey()), deadline)
	if !ok {
		return nil
	}
	return claim.Matches(names, patterns, fold, deadline)
}

// Check normalizes the patterns and checks the request against the limits. moved lists the texts that do not exist in
// the request's folder and were therefore resolved relative to the top of the code base.
func (cs *Claims) Check(r *claim.Request) (moved []claim.Moved, err error) {
	if r.TTL == 0 {
		r.TTL = defaultTTL
	}
	if err := checkCount(r.Patterns); err != nil {
		return nil, err
	}
	if r.TTL < MinTTL || r.TTL > MaxTTL {
		return nil, &refusal.Error{
			What:  refusal.Invalid("A lease of {=name} {arg} is out of range: use 60 to 2592000 seconds (30 days)."),
			Field: refusal.Lease,
			Name:  r.TTL.String(),
		}
	}
	if err := core.CheckText(refusal.Reason, r.Reason, 1024); err != nil {
		return nil, err
	}
	err = cs.Normalize(r.From, func(m *claim.Normalizer) (err error) {
		r.Patterns, err = m.Patterns(r.Patterns)
		moved = m.Moved
		return err
	})
	if err == nil {
		err = checkCount(r.Patterns)
	}
	if err != nil {
		return nil, err
	}
	return moved, nil
}

func checkCount(patterns []string) error {
	switch n := len(patterns); {
	case n == 0:
		return &refusal.Error{What: refusal.NoPaths, Field: refusal.Paths}
	case n > claim.MaxPatterns:
		return refusal.Over(refusal.TooManyPaths, refusal.Paths, n, claim.MaxPatterns)
	}
	return nil
}

// Normalize calls f with a Normalizer for the project's code base and the caller's folder. It returns any error from f,
// or ErrUnavailable if the code base cannot be read.
func (cs *Claims) Normalize(from claim.From, f func(m *claim.Normalizer) error) error {
	places, err := cs.mail.Store.Places()
	if err != nil {
		return err
	}
	err = places.Visit(cs.mail.HumanKey(), from.WorkDir, func(v *repo.View) error {
		return f(&claim.Normalizer{Top: cs.mail.HumanKey(), Home: cs.mail.Store.Scope.Home, CodeBase: v, Below: from.Folder})
	})
	return refusal.Disk(err)
}

// PlanAll plans the files for the granted claims, and sets the operation's verb and summary.
func (cs *Claims) PlanAll(g *writer.Group, tx *writer.Tx, res *claim.Result, r *claim.Request) error {
	for _, row := range res.Granted {
		if err := cs.Plan(g, tx, row); err != nil {
			return err
		}
	}
	if res.Renewed {
		tx.Verb = history.VerbRenew
	}
	mode := "exclusive"
	if r.Shared {
		mode = "shared"
	}
	tx.Summary = fmt.Sprintf("%s %s %s", r.Agent, mode, strings.Join(r.Patterns, ", "))
	return nil
}

// Plan plans writing the claim's file. The new file replaces an older file for the same agent and pattern, and keeps
// the older file's unknown keys.
func (cs *Claims) Plan(g *writer.Group, tx *writer.Tx, c claim.Row) error {
	old, _, err := cs.mail.Tree.Read(c.Path, format.MaxSmall)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		tx.Create(c.Path, format.FormatClaim(c.Claim, nil))
		return g.Remove(tx, format.ReleasedMark(c.Path))
	case tree.FaultOf(err) == tree.FaultMachine:
		return err
	case err != nil:
		return &refusal.Error{
			What: refusal.Conflict("The existing claim file {=other} cannot be read ({why}). Remove that " +
				"file."),
			Other: c.Path,
			Why:   tree.PlainFileError(err),
		}
	}
	if err := g.Replace(tx, c.Path, format.FormatClaim(c.Claim, old)); err != nil {
		return err
	}
	return g.Remove(tx, format.ReleasedMark(c.Path))
}

// PlanRelease plans the release of each claim: a release mark with the given content next to the claim's file.
func (cs *Claims) PlanRelease(g *writer.Group, tx *writer.Tx, claims []claim.Row, mark []byte) error {
	for i := range claims {
		c := &claims[i]
		if err := cs.mail.FreeFor(g, format.ReleasedMark(c.Path)); err != nil {
			return err
		}
		c.Released, c.ReleasedAt = true, g.Now.Truncate(time.Microsecond)
		tx.Create(format.ReleasedMark(c.Path), mark)
	}
	return nil
}

// Listed returns the patterns of claims, separated by commas.
func Listed(claims []claim.Row) string {
	names := make([]string, len(claims))
	for i := range claims {
		names[i] = claims[i].Pattern
	}
	return strings.Join(names, ", ")
}

// List lists live claims and, if all is set, also released and expired claims. The claims are sorted by created, agent
// and path. List returns any error from Look.
func (cs *Claims) List(ctx context.Context, all bool) ([]claim.Row, error) {
	return cs.Select(ctx, func(_ *claim.Row, live bool) bool { return all || live })
}

// Of lists the agent's live claims. It omits claims that belong to another machine's agent with the same name.
func (cs *Claims) Of(ctx context.Context, agent string) ([]claim.Row, error) {
	a, err := cs.mail.Store.Index.Agent(ctx, cs.mail.Slug, agent)
	if err != nil {
		return nil, err
	}
	return cs.Select(ctx, func(c *claim.Row, live bool) bool {
		return live && c.Agent == agent && !cs.Elsewhere.IsNamesakes(c.Path, a)
	})
}

// Covering lists the live exclusive claims that cover any of the files at paths, earliest first, each with the files
// that it covers. The paths are relative to the root of the code repository. It returns any error from List.
func (cs *Claims) Covering(ctx context.Context, paths []string) ([]claim.Blocked, error) {
	fold, err := cs.code.IgnoresCase(cs.mail.HumanKey())
	if err != nil {
		return nil, refusal.Disk(err)
	}
	const ended = false
	live, err := cs.List(ctx, ended)
	if err != nil {
		return nil, err
	}
	const anyone = "" // not an agent, so the claims of all agents block the change
	return claim.NewIntent(anyone, paths, fold, cs.mail.Store.Now()).Blocking(live), nil
}

// Select lists the claims that pass accepts, in the same order as List. pass receives each claim, and whether it is
// live.
func (cs *Claims) Select(ctx context.Context, pass func(c *claim.Row, live bool) bool) (rows []claim.Row, err error) {
	err = cs.Look(ctx, func(l *claim.Leases) error {
		rows = l.Select(pass)
		return nil
	})
	return rows, err
}

// Look calls f with the project's claims, brought up to date with the index. Only one Look runs at a time, so f must
// not wait for files. Look returns any error from f. If Look returns ErrUnavailable, f's results are invalid.
func (cs *Claims) Look(ctx context.Context, f func(l *claim.Leases) error) error {
	fold, err := cs.code.IgnoresCase(cs.mail.HumanKey())
	if err != nil {
		return refusal.Disk(err)
	}
	return cs.View(func(view claim.View) error {
		view.Fold = fold
		return cs.leases.Look(ctx, cs.mail.Store.Index, cs.mail.Slug, view, f)
	})
}

// View calls f with a view of the code base at the current time. The view does not ignore case. View returns any error
// from f. If View returns ErrUnavailable, f's results are invalid.
func (cs *Claims) View(f func(view claim.View) error) error {
	isFile, done := cs.code.Look(cs.mail.HumanKey())
	err := f(claim.View{Now: cs.mail.Store.Now(), IsFile: isFile})
	if fault := done(); err == nil {
		err = refusal.Disk(fault)
	}
	return err
}

// Sweep returns the operation that removes the files of claims that ended at least a week ago. A file is kept if it
// contains a newer claim that is not in the index yet. See docs/reference/tree.md, "A claim".
func (cs *Claims) Sweep() *writer.Tx {
	tx := &writer.Tx{Op: writer.Op{Verb: "sweep", Summary: "claims that ended at least a week ago"}, Facts: []string{core.ClaimsFact}}
	tx.Plan = func(g *writer.Group) error {
		old, err := cs.Select(g.Ctx, func(c *claim.Row, _ bool) bool { return g.Now.Sub(c.End()) >= keepClaims })
		if err != nil {
			return err
		}
		for i := range old {
			c, before := &old[i], len(tx.Writes)
			if cs.Elsewhere.IsListed(c.Path) { // the list's expiry times do not depend on this machine's clock
				continue
			}
			if before >= 2*writer.MaxGroup {
				break
			}
			if err := g.Remove(tx, c.Path, format.ReleasedMark(c.Path)); err != nil {
				tx.Writes = nil
				return nil // keep the file: a file that cannot be committed must not be removed
			}
			if !cs.stands(c) { // Group.publish detects changes after this check
				tx.Writes = tx.Writes[:before]
			}
		}
		return nil
	}
	return tx
}

// stands reports whether the claim's files still agree with the index about the claim's expiry and release.
func (cs *Claims) stands(c *claim.Row) bool {
	data, _, err := cs.mail.Tree.Read(c.Path, format.MaxSmall)
	if err != nil {
		return false
	}
	now, err := format.ParseClaim(data)
	if err != nil || now.Expires.UnixMicro() != c.Expires.UnixMicro() {
		return false
	}
	_, err = cs.mail.Tree.Stat(format.ReleasedMark(c.Path))
	return tree.FaultOf(err) != tree.FaultMachine && c.Released == (err == nil)
}

// ReleasedBy returns the agent that released another agent's claim. mark is the path of the release mark. ReleasedBy
// returns "" if the holder released the claim, or if the agent is unknown.
func (cs *Claims) ReleasedBy(mark string) string {
	data, _, err := cs.mail.Tree.Read(mark, format.MaxSmall)
	if err != nil {
		return ""
	}
	return format.ReleasedBy(data)
}

// NotifyOutdone notifies the holders of exclusive claims on a pattern that another agent claimed earlier, once for
// each claim. The server never grants such a second claim. However, two claims may be live after a clock jumped
// forward and back, or if users write claim files themselves.
func (cs *Claims) NotifyOutdone(ctx context.Context) error {
	live, err := cs.Select(ctx, func(c *claim.Row, live bool) bool { return live && c.Exclusive })
	if err != nil {
		return err
	}
	holds := map[string]*claim.Row{} // the oldest claim for each pattern, because claims are sorted by age
	for i := range live {
		c := &live[i]
		first := holds[c.Pattern]
		if first == nil || first.Agent == c.Agent {
			holds[c.Pattern] = cmp.Or(first, c)
			continue
		}
		err := cs.NotifyLost(ctx, c, "outdone", fmt.Sprintf("You and %s both have an exclusive claim on %s. %s's "+
			"claim is older, so it is valid and yours is not. Release your claim, and ask %s about your "+
			"changes.", first.Agent, format.Printable(c.Pattern), first.Agent, first.Agent))
		if err != nil {
			return err
		}
	}
	return nil
}

// NotifyLost notifies the holder of a claim that the claim is not valid. It sends at most one notice for each
// combination of claim and how. It returns any error from the writer.
func (cs *Claims) NotifyLost(ctx context.Context, c *claim.Row, how, body string) error {
	return cs.mail.Notify(ctx, core.Notice{
		To:      c.Agent,
		About:   how + " " + tree.SHA256([]byte(c.Path + c.Created.String()))[:32],
		Subject: "Your claim is not valid: " + format.Cut(format.Printable(c.Pattern), 900),
		Body:    body,
	})
}
