package maildir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/glob"
	"mailtree/maildir/tree"
)

// ClaimRow is a claim as the index keeps it.
type ClaimRow struct {
	format.Claim
	Path       string // its file
	Released   bool   // a .released file lies beside it
	ReleasedAt time.Time
}

// Live reports whether the claim holds at now.
func (c *ClaimRow) Live(now time.Time) bool { return !c.Released && now.Before(c.Expires) }

// ClaimRequest asks for leases on all the patterns or none.
type ClaimRequest struct {
	Agent    string
	Patterns []string
	TTL      time.Duration // 0: one hour; 60 s to 30 days
	Shared   bool
	Reason   string
	DryRun   bool
}

// ClaimResult is either every claim granted (or renewed, or with DryRun grantable) or the conflicts.
type ClaimResult struct {
	Granted   []ClaimRow
	Conflicts []ClaimConflict // the first 1,000
	More      int             // conflicts that are not listed
	Expires   time.Time

	renewed bool // all of them
}

// ClaimConflict says who holds what the request asked for.
type ClaimConflict struct {
	Pattern string   // asked for
	Held    ClaimRow // by whom and how
}

// Bounds of a claim. Spec: 3 Claim.
const (
	DefaultTTL  = time.Hour
	MinTTL      = time.Minute
	MaxTTL      = 30 * 24 * time.Hour
	maxPatterns = 200
	maxListed   = 1000               // conflicts in an answer: 200 patterns may conflict with millions of claims
	keepClaims  = 7 * 24 * time.Hour // how long the file of a released or expired claim stays
)

// Claim grants, renews or refuses all the patterns together. A conflict is an answer, not an error.
// Errors: ErrNotFound for the agent, ErrInvalid. Spec: 3 Claim.
func (p *Project) Claim(ctx context.Context, r ClaimRequest) (*ClaimResult, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	var res *ClaimResult
	o := &op{Op: Op{Verb: "claim", Agent: r.Agent}, lock: "claims"}
	o.plan = func(g *group) error {
		res = &ClaimResult{Expires: g.now.Add(r.TTL).Truncate(time.Microsecond)}
		if err := p.needAgent(g.ctx, r.Agent); err != nil {
			return err
		}
		if err := p.needRead(format.ClaimsDir); err != nil {
			return err
		}
		err := p.lookAtClaims(g.ctx, func(l *leases) (err error) {
			if res.Conflicts, res.More, err = l.conflicts(&r); len(res.Conflicts) == 0 {
				res.Granted, res.renewed = l.grants(&r, g.now, res.Expires)
			}
			return err
		})
		if err != nil || r.DryRun || len(res.Conflicts) > 0 {
			return err
		}
		return res.write(g, o, &r)
	}
	defer p.Seen(r.Agent)
	if err := p.do(ctx, o); err != nil {
		return nil, err
	}
	return res, nil
}

// check cleans the patterns and holds the request against the limits.
func (r *ClaimRequest) check() error {
	if r.TTL == 0 {
		r.TTL = DefaultTTL
	}
	switch {
	case len(r.Patterns) == 0:
		return errorf(ErrInvalid, "No paths: name at least one path or glob relative to the code repository's root, such as app/api/*.py.")
	case len(r.Patterns) > maxPatterns:
		return errorf(ErrTooLarge, "%d paths, over the limit of %d: claim folders.", len(r.Patterns), maxPatterns)
	case r.TTL < MinTTL || r.TTL > MaxTTL:
		return errorf(ErrInvalid, "A lease of %s is out of range: 60 seconds to 30 days (2592000).", r.TTL)
	}
	if err := checkText("reason", r.Reason, 1024); err != nil {
		return err
	}
	var clean []string
	for _, pat := range r.Patterns {
		c := glob.Clean(pat)
		if _, err := glob.Compile(c, false); err != nil {
			return errorf(ErrInvalid, "The path %s cannot be claimed: %v.", format.Quote(pat), err)
		}
		if !slices.Contains(clean, c) {
			clean = append(clean, c)
		}
	}
	r.Patterns = clean
	return nil
}

// conflicts lists, per pattern asked for, the live claims of others that stand in its way. Of those made by hand
// the earliest comes first: it is the one that holds. more are those beyond maxListed. Spec: 2.2, 3.
func (l *leases) conflicts(r *ClaimRequest) (out []ClaimConflict, more int, err error) {
	agent := l.number(r.Agent)
	for _, pat := range r.Patterns {
		asked, err := glob.Compile(pat, l.fold)
		if err != nil {
			return nil, 0, err // check let it pass
		}
		for i := range l.all {
			if s := &l.all[i]; s.agent != agent && l.live(s) && (s.exclusive || !r.Shared) && l.overlaps(s, asked) {
				if len(out) == maxListed {
					more++
					continue
				}
				out = append(out, ClaimConflict{pat, *s.row})
			}
		}
	}
	return out, more, nil
}

// grants says what is granted: a new claim for each pattern, or the renewal of the one that is held. renewed says that
// all are held.
func (l *leases) grants(r *ClaimRequest, now, expires time.Time) (out []ClaimRow, renewed bool) {
	held := l.held(r)
	for _, pat := range r.Patterns {
		row := ClaimRow{Claim: format.Claim{Pattern: pat, Agent: r.Agent, Exclusive: !r.Shared, Reason: r.Reason, Created: now.Truncate(time.Microsecond), Expires: expires}}
		if old := held[pat]; old != nil {
			row.Path, row.Created = old.Path, old.Created
			if r.Reason == "" {
				row.Reason = old.Reason
			}
		} else {
			row.Path = l.freePath(pat, r.Agent)
		}
		out = append(out, row)
	}
	return out, len(held) == len(r.Patterns)
}

// held finds the agent's live claims on exactly these patterns, letter for letter: what is renewed.
func (l *leases) held(r *ClaimRequest) map[string]*ClaimRow {
	held := map[string]*ClaimRow{}
	agent := l.number(r.Agent)
	for i := range l.all {
		if s := &l.all[i]; s.agent == agent && l.live(s) && slices.Contains(r.Patterns, s.row.Pattern) && held[s.row.Pattern] == nil {
			held[s.row.Pattern] = s.row
		}
	}
	return held
}

// freePath is where a new claim goes: its own place, or one beside it where somebody has written another claim there
// that is live.
func (l *leases) freePath(pattern, agent string) string {
	path := format.ClaimPath(pattern, agent, "")
	for n := 2; ; n++ {
		if c := l.byPath[path]; c == nil || !l.live(&l.all[l.place(c)]) {
			return path
		}
		path = format.ClaimPath(pattern, agent, "-"+strconv.Itoa(n))
	}
}

// write plans the files of what is granted.
func (res *ClaimResult) write(g *group, o *op, r *ClaimRequest) error {
	for _, row := range res.Granted {
		if err := g.writeClaim(o, row); err != nil {
			return err
		}
	}
	if res.renewed {
		o.Verb = "renew"
	}
	mode := "exclusive"
	if r.Shared {
		mode = "shared"
	}
	o.Summary = fmt.Sprintf("%s %s %s", r.Agent, mode, strings.Join(r.Patterns, ", "))
	return nil
}

// writeClaim plans the claim's file, over an older one of the same agent and pattern where there is one; keys that
// are not ours stay as they stood.
func (g *group) writeClaim(o *op, c ClaimRow) error {
	old, _, err := g.p.tree.Read(c.Path, format.MaxSmall)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.planCreate(c.Path, format.FormatClaim(c.Claim, nil))
		return g.planRemove(o, format.ReleasedMark(c.Path))
	case tree.FaultOf(err) == tree.FaultMachine:
		return err
	case err != nil:
		return errorf(ErrConflict, "The claim file %s is in the way and cannot be read (%s): remove it.", c.Path, plainFileError(err))
	}
	if err := g.planReplace(o, c.Path, format.FormatClaim(c.Claim, old)); err != nil {
		return err
	}
	return g.planRemove(o, format.ReleasedMark(c.Path))
}

// Release gives back the agent's live claims on exactly these patterns, or all of its claims when there are none
// given. It returns those released; one that is not held is no error. Errors: ErrNotFound for the agent.
func (p *Project) Release(ctx context.Context, agent string, patterns []string) ([]ClaimRow, error) {
	var released []ClaimRow
	o := &op{Op: Op{Verb: "release", Agent: agent}, lock: "claims"}
	var clean []string
	for _, pat := range patterns {
		clean = append(clean, glob.Clean(pat))
	}
	o.plan = func(g *group) error {
		released = nil
		if err := p.needAgent(g.ctx, agent); err != nil {
			return err
		}
		if err := p.needRead(format.ClaimsDir); err != nil {
			return err
		}
		rows, err := p.claimsOf(g.ctx, agent, func(s *slot) bool { return len(patterns) == 0 || slices.Contains(clean, s.row.Pattern) })
		if err != nil {
			return err
		}
		var names []string
		for _, c := range rows {
			if err := g.freeFor(format.ReleasedMark(c.Path)); err != nil {
				return err
			}
			c.Released, c.ReleasedAt = true, g.now.Truncate(time.Microsecond)
			released = append(released, c)
			names = append(names, c.Pattern)
			o.planCreate(format.ReleasedMark(c.Path), format.FormatMark(g.now))
		}
		o.Summary = agent + " " + strings.Join(names, ", ")
		return nil
	}
	defer p.Seen(agent)
	if err := p.do(ctx, o); err != nil {
		return nil, err
	}
	return released, nil
}

// Claims lists live claims; all lists released and expired ones too. By created, agent, path.
func (p *Project) Claims(ctx context.Context, all bool) ([]ClaimRow, error) {
	return p.selectClaims(ctx, func(l *leases, s *slot) bool { return all || l.live(s) })
}

// claimsOf lists the agent's live claims that pass.
func (p *Project) claimsOf(ctx context.Context, agent string, pass func(s *slot) bool) ([]ClaimRow, error) {
	return p.selectClaims(ctx, func(l *leases, s *slot) bool { return s.row.Agent == agent && l.live(s) && pass(s) })
}

func (p *Project) selectClaims(ctx context.Context, pass func(l *leases, s *slot) bool) ([]ClaimRow, error) {
	rows := []ClaimRow{}
	err := p.lookAtClaims(ctx, func(l *leases) error {
		for i := range l.all {
			if s := &l.all[i]; pass(l, s) {
				rows = append(rows, *s.row)
			}
		}
		return nil
	})
	return rows, err
}

// sweepClaims removes the files of claims that ended a week ago: their history is Git's. Those of which somebody has made live
// ones again, and the index does not know yet, stay. Spec: 2.2.
func (p *Project) sweepClaims() *op {
	o := &op{Op: Op{Verb: "sweep", Summary: "claims that ended a week ago"}, lock: "claims"}
	o.plan = func(g *group) error {
		var old []ClaimRow // as the index has them
		err := p.lookAtClaims(g.ctx, func(l *leases) error {
			for i := range l.all {
				if c := l.all[i].row; g.now.Sub(c.end()) >= keepClaims {
					old = append(old, *c)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i := range old {
			c, before := &old[i], len(o.writes)
			if before >= 2*maxGroup {
				break
			}
			if err := errors.Join(g.planRemove(o, c.Path), g.planRemove(o, format.ReleasedMark(c.Path))); err != nil {
				o.writes = nil
				return nil // left alone: what may not be committed may not be removed
			}
			if !p.stands(c) { // asked now: what changes after it was taken publish finds
				o.writes = o.writes[:before]
			}
		}
		return nil
	}
	return o
}

// end is when the claim ended or will end.
func (c *ClaimRow) end() time.Time {
	if c.Released && c.ReleasedAt.Before(c.Expires) && !c.ReleasedAt.IsZero() {
		return c.ReleasedAt
	}
	return c.Expires
}

// stands reports whether the claim's files still say when it ends and whether it was released as the index does.
func (p *Project) stands(c *ClaimRow) bool {
	data, _, err := p.tree.Read(c.Path, format.MaxSmall)
	if err != nil {
		return false
	}
	now, err := format.ParseClaim(data)
	if err != nil || now.Expires.UnixMicro() != c.Expires.UnixMicro() {
		return false
	}
	_, err = p.tree.Stat(format.ReleasedMark(c.Path))
	return tree.FaultOf(err) != tree.FaultMachine && c.Released == (err == nil)
}
