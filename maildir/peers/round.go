package peers

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"maps"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/claims"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
)

// claimRound is one try of syncClaims. It is the claim.Source of the list that shall be.
type claimRound struct {
	sync        *Sync
	there, here history.Claims       // the list as others have it, and as the files here have it
	anew        bool                 // the list was lost and made anew since
	is          map[string]*lease    // the list that shall be, by path
	own         map[string]claim.Row // what the files here say, by path
	leases      *claim.Leases        // of is
	lost        map[string]claim.Row // the claim that is in the way of a file here, by the path of the file
	granted     []claim.Row          // to ask
	machine     string               // id of this machine's key
	now         time.Time            // by the monotonic clock,
	at          time.Time            // and by the wall clock
}

// planClaimRound decides what the list shall be.
func (sy *Sync) planClaimRound(ctx context.Context, ask *claimAsk) (*claimRound, error) {
	r := &claimRound{
		sync:    sy,
		leases:  claim.NewLeases(),
		lost:    map[string]claim.Row{},
		machine: sy.mail.Store.Machine(),
		now:     sy.mail.Store.Monotonic(),
		at:      sy.mail.Store.Now().UTC(),
	}
	var err error
	if r.there, r.here, err = sy.mail.History.SharedClaims(ctx); err != nil {
		return nil, err
	}
	r.anew = r.there.Files[format.ClaimsAbout] != r.here.Files[format.ClaimsAbout]
	files, err := sy.claims.List(ctx, true)
	if err != nil {
		return nil, err
	}
	r.own = byFile(files)
	if err := r.read(ctx); err != nil {
		return nil, err
	}
	if err := r.giveBack(ask == nil); err != nil {
		return nil, err
	}
	for _, f := range files { // the oldest first
		asks, err := r.asksFor(ctx, &f)
		if err == nil && asks {
			err = r.enterFile(ctx, &f)
		}
		if err != nil {
			return nil, err
		}
	}
	if ask != nil {
		err = r.answerAsk(ctx, ask)
	}
	return r, err
}

// byFile returns claims by the paths of their files.
func byFile(claims []claim.Row) map[string]claim.Row {
	by := make(map[string]claim.Row, len(claims))
	for _, c := range claims {
		by[c.Path] = c
	}
	return by
}

// read reads the list's leases that have not ended. It leaves out files that are none.
func (r *claimRound) read(ctx context.Context) error {
	known := r.sync.leases
	r.sync.leases = map[string]*lease{}
	r.is = map[string]*lease{}
	return r.sync.mail.History.Blobs(ctx, func(read func(hash string) ([]byte, error)) error {
		// A list that was made anew gets what the files here have followed.
		for _, list := range []map[string]string{r.here.Files, r.there.Files} {
			for path, file := range list {
				l := known[file]
				if path == format.ClaimsAbout {
					continue
				}
				if l == nil {
					data, err := read(file)
					if err != nil {
						return err
					}
					l = &lease{file: file}
					if l.Lease, err = format.ParseLease(data); err != nil || len(data) > format.MaxSmall {
						continue
					}
					r.setEnd(path, l)
				}
				r.sync.leases[file] = l
				if (r.anew || r.there.Files[path] == file) && r.now.Before(l.until) {
					r.is[path] = l
				}
			}
		}
		return nil
	})
}

// setEnd sets when a lease ends that this server has not seen before. Of this machine's own leases the files here
// say so; any other counts from now.
func (r *claimRound) setEnd(path string, l *lease) {
	left := l.Length
	if l.Machine != r.machine {
		left += claimGrace
	} else if f, ok := r.own[path]; ok && f.Created.Equal(l.Created) && r.here.Files[path] == l.file {
		left = min(f.Expires.Sub(r.at), left)
	}
	l.until, l.expires = r.now.Add(left), r.at.Add(left).Truncate(time.Microsecond)
}

// giveBack takes out of the list what was released here, and with removed also those of this machine's own claims
// that somebody has removed here or made to end.
func (r *claimRound) giveBack(removed bool) error {
	for path, l := range r.is {
		f, ok := r.own[path]
		// A mark may also follow a list that lacked the claim, as it does until its release is undone.
		followed := r.here.Files[path] == l.file || l.Machine == r.machine && r.here.Files[path] == ""
		switch {
		case ok && f.Released && f.Created.Equal(l.Created) && followed:
			delete(r.is, path)
		case l.Machine != r.machine:
		case ok && f.Created.Equal(l.Created) && !f.Live(r.at) && !f.Expires.Equal(l.expires):
			delete(r.is, path)
		case !ok && removed && r.here.Files[path] == l.file:
			there, err := r.sync.mail.Tree.Exists(path) // it may be there and not be valid
			if err != nil {
				return err
			}
			if !there {
				delete(r.is, path)
			}
		}
	}
	return nil
}

// asksFor reports whether a file here is to get into the list: it was made here, or its end was changed, while the
// list could not be asked or by hand. A file of another machine's agent never is: an old commit may bring it.
func (r *claimRound) asksFor(ctx context.Context, f *claim.Row) (bool, error) {
	if !f.Live(r.at) {
		return false, nil
	}
	l := r.sync.leases[r.here.Files[f.Path]] // what the file has followed
	if l != nil && l.Created.Equal(f.Created) {
		return l.Machine == r.machine && !f.Expires.Equal(l.expires), nil
	}
	if r.is[f.Path] != nil {
		return false, nil
	}
	a, err := r.sync.mail.Store.Index.Agent(ctx, r.sync.mail.Slug, f.Agent)
	return a == nil || !r.sync.mail.Elsewhere(a), err
}

// Claims implements claim.Source.
func (r *claimRound) Claims(ctx context.Context, project string) ([]claim.Row, error) {
	return r.ClaimsAt(ctx, project, slices.Collect(maps.Keys(r.is)))
}

// ClaimsAt implements claim.Source.
func (r *claimRound) ClaimsAt(ctx context.Context, project string, paths []string) (rows []claim.Row, err error) {
	agents := map[string]*index.AgentRow{}
	for _, path := range paths {
		l := r.is[path]
		if l == nil {
			continue
		}
		row := r.row(path, l)
		a, known := agents[l.Agent]
		if !known {
			if a, err = r.sync.mail.Store.Index.Agent(ctx, project, l.Agent); err != nil {
				return nil, err
			}
			agents[l.Agent] = a
		}
		if l.IsNamesakes(a) {
			row.Agent += namesake
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// namesake marks, in a round, the holder of a claim where this machine has another agent of that name: the mail of
// the two machines has not met yet.
const namesake = "\x00"

// row returns a lease as this machine's claim file has it.
func (r *claimRound) row(path string, l *lease) claim.Row {
	row := claim.Row{Claim: l.Claim, Path: path}
	row.Expires = l.expires
	return row
}

// look calls f with the list that shall be.
func (r *claimRound) look(ctx context.Context, f func(l *claim.Leases) error) error {
	const fold = true // whether some machine ignores case is not known
	return r.sync.claims.LookAt(ctx, r.leases, r, fold, f)
}

// enterFile puts the claim of a file here into the list, unless another is in its way.
func (r *claimRound) enterFile(ctx context.Context, f *claim.Row) error {
	ask := &claim.Request{Agent: f.Agent, Patterns: []string{f.Pattern}, Shared: !f.Exclusive}
	return r.look(ctx, func(l *claim.Leases) error {
		found, _, err := l.Conflicts(ask)
		switch {
		case err != nil:
			return err
		case len(found) > 0:
			r.lost[f.Path] = found[0].Held
			return nil
		}
		return r.put(ctx, f, min(f.Expires.Sub(r.at), claims.MaxTTL))
	})
}

// put puts a claim of this machine into the list, or renews it there.
func (r *claimRound) put(ctx context.Context, f *claim.Row, length time.Duration) error {
	l := &lease{
		Lease:   format.Lease{Claim: f.Claim, Length: length.Round(time.Second), Machine: r.machine},
		until:   r.now.Add(length),
		expires: f.Expires,
	}
	a, err := r.sync.mail.Store.Index.Agent(ctx, r.sync.mail.Slug, f.Agent)
	if err != nil {
		return err
	}
	if a != nil {
		l.Inception = a.Inception
	}
	if was := r.is[f.Path]; was != nil {
		l.Renewal = was.Renewal + 1
	}
	r.is[f.Path] = l
	r.leases.Changed(f.Path, format.KindClaim)
	return nil
}

// answerAsk decides a request.
func (r *claimRound) answerAsk(ctx context.Context, ask *claimAsk) error {
	ask.res = &claim.Result{}
	return r.look(ctx, func(l *claim.Leases) (err error) {
		res := ask.res
		if res.Conflicts, res.More, err = l.Conflicts(ask.Request); err != nil || len(res.Conflicts) > 0 {
			for i := range res.Conflicts {
				held := &res.Conflicts[i].Held
				held.Agent = strings.TrimSuffix(held.Agent, namesake)
			}
			return err
		}
		res.Expires = r.at.Add(ask.TTL).Truncate(time.Microsecond)
		res.Granted, res.Renewed = l.Grants(ask.Request, r.at, res.Expires)
		if ask.DryRun {
			return nil
		}
		r.granted = res.Granted
		for i := range res.Granted {
			err = cmp.Or(err, r.put(ctx, &res.Granted[i], ask.TTL))
		}
		return err
	})
}

// push makes the list what it shall be. It returns history.ErrBehind if another machine was first.
func (r *claimRound) push(ctx context.Context) error {
	files, fresh := map[string]string{}, map[string][]byte{}
	for path, l := range r.is {
		if l.file == "" {
			fresh[path] = format.FormatLease(l.Lease)
		} else {
			files[path] = l.file
		}
	}
	if about := r.there.Files[format.ClaimsAbout]; about != "" {
		files[format.ClaimsAbout] = about
	} else {
		fresh[format.ClaimsAbout] = []byte("The claims of all machines that share this mail, list " + crand.Text() + ".\n")
	}
	if len(fresh) == 0 && maps.Equal(files, r.there.Files) {
		return nil
	}
	next, err := r.sync.mail.History.WriteClaims(ctx, files, fresh)
	if err != nil {
		return err
	}
	if next.Name != r.there.Name {
		if err := r.sync.mail.History.PushClaims(ctx, r.there.Name, next.Name); err != nil {
			return err
		}
	}
	r.there = next
	for path, l := range r.is {
		l.file = next.Files[path]
		r.sync.leases[l.file] = l
	}
	return nil
}
