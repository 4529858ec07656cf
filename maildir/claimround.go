package maildir

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/clock"
	"mailtree/maildir/format"
	"mailtree/maildir/history"
	"mailtree/maildir/index"
	"mailtree/maildir/refusal"
)

// Claims of machines that share a mail are decided by one list, which only one push at a time can change: a
// server reads the list, decides, pushes the list with the new claim if the list is still the one it has read,
// and only then answers. The claim files of each tree follow the list. See docs/sync.md, "Claims".

// claimGrace is how much longer than its length a claim of another machine counts, from when this machine first
// saw it: its holder's machine counts from when it was made, and is told later.
const claimGrace = time.Minute

// claimPatience is how long a claim waits for the machines' list.
const claimPatience = 30 * time.Second

// lease is a claim in the machines' list as this machine counts it.
type lease struct {
	format.Lease
	until   time.Time // by the monotonic clock
	expires time.Time // as the claim's file here has it
	file    string    // Git's name of the content; "": not written yet
}

// isNamesakes reports whether the lease is that of another agent of a's name. People are one on all machines.
func (l *lease) isNamesakes(a *index.AgentRow) bool {
	return a != nil && a.Program != personProgram && !l.Inception.IsZero() && !a.Inception.Equal(l.Inception)
}

// claimAsk is a request for claims that the list decides.
type claimAsk struct {
	*claim.Request
	box *Box
	res *claim.Result
}

// outOfReach says that the machines' list could not be read or changed.
type outOfReach struct {
	err    error
	unsure bool // the list may have the claim
}

func (e *outOfReach) Error() string { return e.err.Error() }
func (e *outOfReach) Unwrap() error { return e.err }

// grantShared is grant where machines share the mail.
func (b *Box) grantShared(ctx context.Context, r *claim.Request) (*claim.Result, error) {
	if err := b.p.needAgent(ctx, refusal.Agent, b.agent); err != nil {
		return nil, err
	}
	if err := b.p.mayAct(ctx, b.agent); err != nil {
		return nil, err
	}
	ask := &claimAsk{Request: r, box: b}
	err := b.p.withClaims(ctx, func(ctx context.Context) error { return b.p.syncClaims(ctx, ask) })
	if err == nil {
		return ask.res, nil
	}
	var refused *Error
	if errors.As(err, &refused) {
		return nil, err
	}
	away := &outOfReach{err: err}
	errors.As(err, &away)
	if !b.p.store.cfg.ClaimAlone {
		if errors.Is(err, history.ErrDeclined) {
			return nil, refuseDeclined(away.err)
		}
		what := refusal.Unavailable("Nothing was claimed: the claims of the other machines cannot be reached ({why}). Try again in a moment; " +
			"{claim without the others}.")
		if away.unsure {
			what = refusal.Unavailable("The other machines may have been told of the claim, or not: they cannot be reached any more ({why}). " +
				"Claim the same again in a moment, which renews it if it was made; {claim without the others}.")
		}
		return nil, &Error{What: what, Why: away.Error(), Err: away.err}
	}
	res, err := b.grant(ctx, r)
	if err == nil {
		res.Alone = away.Error()
	}
	return res, err
}

// claimsDeclined says why machines that share mail share no claims.
const claimsDeclined = "The host of the shared repository refuses the refs below refs/mailtree/, in which machines share their claims. " +
	"Allow these refs there, or share the mail through another host."

// refuseDeclined refuses what needs the claims of the other machines if the host refuses their list.
func refuseDeclined(err error) error {
	return &Error{
		What: refusal.Unavailable("Nothing was claimed: {why}. Allow these refs there, or share the mail through another host; " +
			"{claim without the others}."),
		Why: history.ErrDeclined.Error(),
		Err: err,
	}
}

// withClaims calls f when no round runs, within claimPatience. What f pushes it also writes, even if the caller
// goes meanwhile.
func (p *Project) withClaims(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), claimPatience, errors.New("it did not get its turn in time"))
	defer cancel()
	return p.shared.inTurn(ctx, func() error { return f(ctx) })
}

// syncClaims brings the machines' list and the claim files here together: files that were made or released here
// are put into the list or taken out, and files follow what others have changed. It decides ask, if there is
// one. The caller holds the turn. It returns outOfReach, and the errors of the history and of the writer.
func (p *Project) syncClaims(ctx context.Context, ask *claimAsk) (err error) {
	unsure := false
	for try := range syncTries {
		if try > 0 {
			if err := clock.Sleep(ctx, rand.N(20*time.Millisecond<<min(try, 6))); err != nil {
				return &outOfReach{err, unsure}
			}
			if err := p.History.FetchClaims(ctx); err != nil {
				return &outOfReach{err, unsure}
			}
		}
		var r *claimRound
		if r, err = p.planClaimRound(ctx, ask); err != nil {
			return err
		}
		if try == 0 && ask != nil && (ask.DryRun || len(ask.res.Conflicts) > 0) {
			continue // the list may be another by now
		}
		if err = r.push(ctx); err == nil {
			p.shared.note(func(s *SyncState) { s.Claims = "" })
			if err = r.take(ctx, ask); !errors.Is(err, errFilesMoved) {
				return err
			}
		} else if !errors.Is(err, history.ErrBehind) {
			if errors.Is(err, history.ErrDeclined) {
				p.shared.note(func(s *SyncState) { s.Claims = claimsDeclined })
				return &outOfReach{err, false}
			}
			if errors.Is(err, history.ErrNoContact) {
				return &outOfReach{err, unsure}
			}
			unsure = true
		}
	}
	if unsure {
		return &outOfReach{err, unsure}
	}
	return &Error{What: refusal.Unavailable("Nothing was claimed: other machines change their claims all the time ({why}). Try again in a moment."),
		Why: err.Error(), Err: err}
}

// claimRound is one try of syncClaims. It is the claim.Source of the list that shall be.
type claimRound struct {
	p           *Project
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
func (p *Project) planClaimRound(ctx context.Context, ask *claimAsk) (*claimRound, error) {
	r := &claimRound{
		p:       p,
		leases:  claim.NewLeases(),
		lost:    map[string]claim.Row{},
		machine: p.store.machine(),
		now:     p.store.cfg.Monotonic(),
		at:      p.store.cfg.Now().UTC(),
	}
	var err error
	if r.there, r.here, err = p.History.SharedClaims(ctx); err != nil {
		return nil, err
	}
	r.anew = r.there.Files[format.ClaimsAbout] != r.here.Files[format.ClaimsAbout]
	files, err := p.Claims(ctx, true)
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
	known := r.p.shared.leases
	r.p.shared.leases = map[string]*lease{}
	r.is = map[string]*lease{}
	return r.p.History.Blobs(ctx, func(read func(hash string) ([]byte, error)) error {
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
				r.p.shared.leases[file] = l
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
			there, err := r.p.Tree.Exists(path) // it may be there and not be valid
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
	l := r.p.shared.leases[r.here.Files[f.Path]] // what the file has followed
	if l != nil && l.Created.Equal(f.Created) {
		return l.Machine == r.machine && !f.Expires.Equal(l.expires), nil
	}
	if r.is[f.Path] != nil {
		return false, nil
	}
	a, err := r.p.store.index.Agent(ctx, r.p.Slug, f.Agent)
	return a == nil || !r.p.elsewhere(a), err
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
			if a, err = r.p.store.index.Agent(ctx, project, l.Agent); err != nil {
				return nil, err
			}
			agents[l.Agent] = a
		}
		if l.isNamesakes(a) {
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
	return r.p.lookAt(ctx, r.leases, r, fold, f)
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
		return r.put(ctx, f, min(f.Expires.Sub(r.at), MaxTTL))
	})
}

// put puts a claim of this machine into the list, or renews it there.
func (r *claimRound) put(ctx context.Context, f *claim.Row, length time.Duration) error {
	l := &lease{
		Lease:   format.Lease{Claim: f.Claim, Length: length.Round(time.Second), Machine: r.machine},
		until:   r.now.Add(length),
		expires: f.Expires,
	}
	a, err := r.p.store.index.Agent(ctx, r.p.Slug, f.Agent)
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
	next, err := r.p.History.WriteClaims(ctx, files, fresh)
	if err != nil {
		return err
	}
	if next.Name != r.there.Name {
		if err := r.p.History.PushClaims(ctx, r.there.Name, next.Name); err != nil {
			return err
		}
	}
	r.there = next
	for path, l := range r.is {
		l.file = next.Files[path]
		r.p.shared.leases[l.file] = l
	}
	return nil
}

// meetClaims brings the claims here and those of the other machines together. While these are out of reach it
// returns ErrUnavailable, unless claims are granted on this machine alone.
func (p *Project) meetClaims(ctx context.Context) error {
	err := p.withClaims(ctx, func(ctx context.Context) error {
		if err := p.History.FetchClaims(ctx); err != nil {
			return err
		}
		return p.syncClaims(ctx, nil)
	})
	if err == nil || p.store.cfg.ClaimAlone {
		return nil
	}
	if errors.Is(err, history.ErrDeclined) {
		return refuseDeclined(err)
	}
	return &Error{
		What: refusal.Unavailable("The claims of the other machines cannot be reached ({why}). Try again in a moment; {claim without the others}."),
		Why:  err.Error(),
		Err:  err,
	}
}

// keepRegained puts the claims that the undoing of a release has made again into the list. It returns ErrConflict
// if another agent has got one of them meanwhile.
func (p *Project) keepRegained(ctx context.Context, done *history.Done) error {
	if err := p.meetClaims(ctx); err != nil {
		return err
	}
	claims, err := p.claimsOfDone(done)
	if err != nil {
		return err
	}
	live, err := p.Claims(ctx, false)
	for _, c := range claims {
		has := func(row claim.Row) bool { return row.Agent == c.Agent && row.Pattern == c.Pattern }
		if err == nil && !slices.ContainsFunc(live, has) {
			err = &Error{What: refusal.ClaimTaken, Name: c.Pattern, Other: "Somebody"}
		}
	}
	return err
}
