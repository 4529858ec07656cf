package peers

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"maps"

	"mailtree/maildir/claim"
	"mailtree/maildir/claimlist"
	"mailtree/maildir/core"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
	"mailtree/maildir/writer"
)

// claimRound is one try of runClaimRounds. It reads the input for claimlist.Round, and applies the resulting
// claimlist.Next.
type claimRound struct {
	sync         *Sync
	remote, base history.Claims              // the fetched list, and the list that the local files match
	seen         map[string]*claimlist.Entry // the entries in both lists, by Git's hash of the content
	knows        claimlist.Round
	next         *claimlist.Next
	res          *claim.Result // the result of the request; nil if there is no request
}

// planClaims reads the list and the claim files, and computes the next list.
func (sy *Sync) planClaims(ctx context.Context, ask *claim.Request) (*claimRound, error) {
	r := &claimRound{sync: sy, knows: claimlist.Round{
		Machine: sy.mail.Store.Machine(),
		Now:     sy.mail.Store.Monotonic(),
		At:      sy.mail.Store.Now().UTC(),
	}}
	var err error
	if r.remote, r.base, err = sy.mail.History.SharedClaims(ctx); err != nil {
		return nil, fmt.Errorf("cannot read the list of claims: %w", err)
	}
	r.knows.Reset = r.remote.Files[format.ClaimsAbout] != r.base.Files[format.ClaimsAbout]
	if r.knows.Files, err = sy.claims.List(ctx, true); err != nil {
		return nil, err
	}
	if err := r.readEntries(ctx); err != nil {
		return nil, fmt.Errorf("cannot read the list of claims: %w", err)
	}
	if err := r.readRemoved(); err != nil {
		return nil, err
	}
	if err := r.readAgents(ctx, ask); err != nil {
		return nil, err
	}
	err = sy.claims.View(func(view claim.View) (err error) {
		r.knows.IsFile = view.IsFile
		r.next, r.res, err = r.knows.Next(ask)
		return err
	})
	return r, err
}

// readEntries reads the two lists. It skips files that are not leases.
func (r *claimRound) readEntries(ctx context.Context) error {
	known := r.sync.seenClaims()
	r.seen = map[string]*claimlist.Entry{}
	err := r.sync.mail.History.Blobs(ctx, func(read func(hash string) ([]byte, error)) (err error) {
		if r.knows.Base, err = r.entries(r.base.Files, known, read); err == nil {
			r.knows.Remote, err = r.entries(r.remote.Files, known, read)
		}
		return err
	})
	if err == nil {
		r.sync.keepSeen(r.seen)
	}
	return err
}

// entries returns a list's entries by path. Entries that this server has seen before come from known.
func (r *claimRound) entries(list map[string]string, known map[string]*claimlist.Entry, read func(hash string) ([]byte, error)) (
	map[string]*claimlist.Entry, error,
) {
	entries := map[string]*claimlist.Entry{}
	for path, blob := range list {
		if path == format.ClaimsAbout {
			continue
		}
		e := known[blob]
		if e == nil {
			e = r.seen[blob]
		}
		if e == nil {
			data, err := read(blob)
			if err != nil {
				return nil, err
			}
			lease, err := format.ParseLease(data)
			if err != nil || len(data) > format.MaxSmall {
				continue
			}
			e = r.knows.NewEntry(path, blob, lease, r.base.Files[path] == blob)
		}
		r.seen[blob], entries[path] = e, e
	}
	return entries, nil
}

// readRemoved finds the claim files that have been removed since the files last matched the list. It checks whether
// each file exists, because the list of local claims omits invalid files as well as removed ones.
func (r *claimRound) readRemoved() error {
	r.knows.Removed = map[string]bool{}
	own := claimlist.ByPath(r.knows.Files)
	for path := range r.knows.Base {
		if _, here := own[path]; here {
			continue
		}
		there, err := r.sync.mail.Tree.Exists(path)
		if err != nil {
			return err
		}
		r.knows.Removed[path] = !there
	}
	return nil
}

// readAgents looks up the agents that hold the claims, and the requesting agent.
func (r *claimRound) readAgents(ctx context.Context, ask *claim.Request) error {
	names := map[string]bool{}
	for _, e := range r.seen {
		names[e.Agent] = true
	}
	for i := range r.knows.Files {
		names[r.knows.Files[i].Agent] = true
	}
	if ask != nil {
		names[ask.Agent] = true
	}
	r.knows.Agents = map[string]*claimlist.Agent{}
	for name := range names {
		a, err := r.sync.mail.Store.Index.Agent(ctx, r.sync.mail.Slug, name)
		if err != nil {
			return err
		}
		if a != nil {
			r.knows.Agents[name] = r.sync.claimant(a)
		}
	}
	return nil
}

// claimant converts an agent to the form that package claimlist needs. It returns nil if a is nil.
func (sy *Sync) claimant(a *index.AgentRow) *claimlist.Agent {
	if a == nil {
		return nil
	}
	return &claimlist.Agent{Inception: a.Inception, Person: a.Program == core.PersonProgram, Elsewhere: sy.mail.Elsewhere(a)}
}

// push pushes the next list. It returns history.ErrBehind if another machine pushed first.
func (r *claimRound) push(ctx context.Context) error {
	files, fresh := map[string]string{}, map[string][]byte{}
	for path, e := range r.next.List {
		if e.Blob == "" {
			fresh[path] = format.FormatLease(e.Lease)
		} else {
			files[path] = e.Blob
		}
	}
	if about := r.remote.Files[format.ClaimsAbout]; about != "" {
		files[format.ClaimsAbout] = about
	} else {
		fresh[format.ClaimsAbout] = []byte("The claims of all machines that share this mail. List id: " + crand.Text() + ".\n")
	}
	if len(fresh) > 0 || !maps.Equal(files, r.remote.Files) {
		next, err := r.sync.mail.History.WriteClaims(ctx, files, fresh)
		if err != nil {
			return fmt.Errorf("cannot write the list of claims: %w", err)
		}
		if next.Name != r.remote.Name {
			if err := r.sync.mail.History.PushClaims(ctx, r.remote.Name, next.Name); err != nil {
				return err
			}
		}
		r.remote = next
	}
	for path, e := range r.next.List {
		written := *e
		written.Blob = r.remote.Files[path]
		r.next.List[path], r.seen[written.Blob] = &written, &written
	}
	r.sync.keepSeen(r.seen)
	return nil
}

// apply updates the local claim files to match the list, and records that they match it. ok is false if one of the
// files has changed since the round began. After a grant, ok is always true.
func (r *claimRound) apply(ctx context.Context, ask *claim.Request) (ok bool, err error) {
	if len(r.next.Granted) == 0 {
		return r.applyList(ctx)
	}
	tx := &writer.Tx{Op: writer.Op{Verb: history.VerbClaim, Agent: ask.Agent}, Facts: []string{core.ClaimsFact}, Sure: true}
	tx.Plan = func(g *writer.Group) error { return r.sync.claims.PlanAll(g, tx, r.res, ask) }
	if err := r.sync.mail.Perform(ctx, ask.Agent, tx); err != nil {
		return false, err
	}
	if ok, err := r.applyList(ctx); err != nil || !ok {
		core.Ring(r.sync.bell) // the next round applies the list, and reports any problem
	}
	return true, nil
}

// applyList is like apply, but omits the claims that were just granted.
func (r *claimRound) applyList(ctx context.Context) (ok bool, err error) {
	tx := &writer.Tx{Op: writer.Op{Verb: "sync"}, Facts: []string{core.ClaimsFact}}
	followed := false // valid only if Do succeeds; if Do fails, the plan may still be running
	tx.Plan = func(g *writer.Group) (err error) {
		followed, err = r.planFiles(g, tx)
		return err
	}
	if err := r.sync.mail.Writer.Do(ctx, tx); err != nil {
		return false, err
	}
	if !followed {
		return false, nil
	}
	list := r.next.Followed()
	for _, e := range list {
		r.seen[e.Blob] = e
	}
	r.sync.keepSeen(r.seen)
	r.sync.list(list)
	for _, f := range r.next.Ended() {
		if err := r.tellEnded(ctx, f); err != nil {
			return false, err
		}
	}
	if r.base.Name == r.remote.Name {
		return true, nil
	}
	return true, r.sync.mail.History.KeepClaims(ctx, r.remote.Name)
}

// planFiles plans to write claim files that other machines have changed, and release marks for claims that are not in
// the list. If a file has changed since the round began, planFiles plans nothing and ok is false.
func (r *claimRound) planFiles(g *writer.Group, tx *writer.Tx) (ok bool, err error) {
	files, err := r.sync.claims.List(g.Ctx, true)
	if err != nil {
		return false, err
	}
	write, ended, ok := r.next.Follow(claimlist.ByPath(files))
	if !ok {
		return false, nil
	}
	written, released := 0, 0
	for _, row := range write {
		ok, err := r.plan(tx, func() error { return r.sync.claims.Plan(g, tx, row) })
		if err != nil {
			return false, err
		}
		if ok {
			written++
		}
	}
	for i := range ended {
		ok, err := r.plan(tx, func() error { return r.sync.claims.PlanRelease(g, tx, ended[i:i+1], format.FormatMark(g.Now)) })
		if err != nil {
			return false, err
		}
		if ok {
			released++
		}
	}
	tx.Summary = fmt.Sprintf("claims from other machines: %d new, %d ended", written, released)
	return true, nil
}

// plan calls f, which adds writes to tx. If f refuses because something else is at a claim file's path, plan adds
// nothing and ok is false. Such a path is reported as a problem and does not delay other claims.
func (r *claimRound) plan(tx *writer.Tx, f func() error) (ok bool, err error) {
	before := len(tx.Writes)
	err = f()
	var refused *refusal.Error
	if errors.As(err, &refused) {
		tx.Writes = tx.Writes[:before]
		return false, nil
	}
	return err == nil, err
}

// tellEnded notifies a claim's holder that the claim is no longer in the list, if the holder belongs to this machine
// and has not been notified yet.
func (r *claimRound) tellEnded(ctx context.Context, f claim.Row) error {
	if r.knows.Agents[f.Agent] == nil || !r.next.IsNews(&f) {
		return nil
	}
	why := "It was released on another machine, or the shared list of claims was reset. Claim the paths again " +
		"before you continue."
	if held, lost := r.next.Lost[f.Path]; lost {
		why = fmt.Sprintf("The other machines did not know about your claim, and on one of them %s has claimed %s. Ask "+
			"%s about your changes.", held.Agent,
			format.Printable(held.Pattern), held.Agent)
	}
	return r.sync.claims.NotifyLost(ctx, &f, "ended", fmt.Sprintf("Your claim on %s was released. %s", format.Printable(f.Pattern), why))
}
