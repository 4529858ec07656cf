package peers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
	"mailtree/maildir/writer"
)

// take makes the claim files here what the list says, and notes that they are. It returns errFilesMoved if
// somebody has changed one of them meanwhile.
func (r *claimRound) take(ctx context.Context, ask *claimAsk) error {
	if len(r.granted) > 0 {
		tx := &writer.Tx{Op: writer.Op{Verb: "claim", Agent: ask.Agent}, Facts: []string{core.ClaimsFact}, Sure: true}
		tx.Plan = func(g *writer.Group) error { return r.sync.claims.PlanAll(g, tx, ask.res, ask.Request) }
		if err := r.sync.mail.Perform(ctx, ask.Agent, tx); err != nil {
			return err
		}
	}
	err := r.takeOthers(ctx)
	if err != nil && len(r.granted) > 0 {
		core.Ring(r.sync.bell) // a round takes them, and says what is wrong
		return nil
	}
	return err
}

// takeOthers is take for all claims but those that were granted just now.
func (r *claimRound) takeOthers(ctx context.Context) error {
	tx := &writer.Tx{Op: writer.Op{Verb: "sync"}, Facts: []string{core.ClaimsFact}}
	tx.Plan = func(g *writer.Group) error { return r.followList(g, tx) }
	if err := r.sync.mail.Writer.Do(ctx, tx); err != nil {
		return err
	}
	r.sync.list(r.is)
	for path, f := range r.own {
		if f.Live(r.at) && r.is[path] == nil {
			if err := r.tellEnded(ctx, f); err != nil {
				return err
			}
		}
	}
	if r.here.Name == r.there.Name {
		return nil
	}
	return r.sync.mail.History.KeepClaims(ctx, r.there.Name)
}

// followList plans the claim files that others have changed, and marks those as released that the list lacks.
func (r *claimRound) followList(g *writer.Group, tx *writer.Tx) error {
	files, err := r.sync.claims.List(g.Ctx, true)
	if err != nil {
		return err
	}
	now := byFile(files)
	for _, row := range r.granted {
		r.own[row.Path] = now[row.Path] // it was written just now
	}
	var ended []claim.Row
	n := 0
	for path, l := range r.is {
		f := r.own[path]
		left := l.until.Sub(r.now)
		if off := f.Expires.Sub(r.at) - left; off > claimGrace || off < -claimGrace { // edited, or the clock was set
			l.expires = r.at.Add(left).Truncate(time.Microsecond)
		}
		row := r.row(path, l)
		row.Reason = f.Reason
		if f == row {
			continue
		}
		if now[path] != f {
			return errFilesMoved
		}
		row.Reason = l.Reason
		writes := len(tx.Writes)
		var refused *refusal.Error
		switch err := r.sync.claims.Plan(g, tx, row); {
		case errors.As(err, &refused): // what lies there is a problem by itself, and stops no other claim
			tx.Writes = tx.Writes[:writes]
		case err != nil:
			return err
		default:
			n++
		}
	}
	for path, f := range r.own {
		if f.Live(r.at) && r.is[path] == nil {
			if now[path] != f {
				return errFilesMoved
			}
			ended = append(ended, f)
		}
	}
	tx.Summary = fmt.Sprintf("claims of other machines: %d new, %d ended", n, len(ended))
	return r.sync.claims.PlanRelease(g, tx, ended, format.FormatMark(g.Now))
}

// tellEnded tells the holder of a claim file that the list lacks its claim, if the holder is an agent of this
// machine.
func (r *claimRound) tellEnded(ctx context.Context, f claim.Row) error {
	a, err := r.sync.mail.Store.Index.Agent(ctx, r.sync.mail.Slug, f.Agent)
	l := r.sync.leases[r.here.Files[f.Path]]
	held, lost := r.lost[f.Path]
	ran := l != nil && !r.now.Before(l.until)
	if a == nil || err != nil || !lost && (ran || l == nil || l.Machine != r.machine) {
		return err
	}
	why := "It was given back on another machine, or the list of the machines' claims was set back. Claim it again before you go on."
	if lost {
		held.Agent = strings.TrimSuffix(held.Agent, namesake)
		why = fmt.Sprintf("The other machines did not know of it, and for them %s has claimed %s: ask %s about your changes.", held.Agent,
			format.Printable(held.Pattern), held.Agent)
	}
	return r.sync.mail.Notify(ctx, core.Notice{
		To:      f.Agent,
		About:   "ended " + tree.SHA256([]byte(f.Path + f.Created.String()))[:32],
		Subject: "Your claim does not hold: " + format.Cut(format.Printable(f.Pattern), 900),
		Body:    fmt.Sprintf("Your claim of %s is released. %s", format.Printable(f.Pattern), why),
	})
}
