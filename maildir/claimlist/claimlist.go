// Package claimlist computes the next version of the list of claims that machines share. It does not read files, the
// index or the clock, and it writes nothing. Package peers reads the list, calls Next, pushes the result, and updates
// the claim files. See docs/reference/sync.md, "Claims".
package claimlist

import (
	"maps"
	"slices"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
)

// Grace is added to the duration of another machine's lease. This machine counts the duration from the moment it
// first sees the claim. The holder's machine counts the duration from the claim's creation, and learns only later
// that the claim was granted.
const Grace = time.Minute

// Entry is a claim in the list, with the time when the claim expires on this machine. It is immutable.
type Entry struct {
	format.Lease
	Until   time.Time // expiry on the monotonic clock
	Expires time.Time // expiry on the wall clock, as in this machine's claim file
	Blob    string    // Git's hash of the content; empty if not written yet
}

// Row returns the claim as it appears in the file at path on this machine.
func (e *Entry) Row(path string) claim.Row {
	row := claim.Row{Claim: e.Claim, Path: path}
	row.Expires = e.Expires
	return row
}

// Agent describes a holder of claims, according to this machine's mail.
type Agent struct {
	Inception time.Time
	Person    bool // a user's agent, which is the same on all machines
	Elsewhere bool // the agent belongs to another machine
}

// IsNamesakes reports whether the claim belongs to a different agent that happens to have the same name as a. It
// returns false if a is nil.
func (e *Entry) IsNamesakes(a *Agent) bool {
	return a != nil && !a.Person && !e.Inception.IsZero() && !a.Inception.Equal(e.Inception)
}

// Round contains the facts from which one machine computes the next list. The keys of Remote, Base and Removed are
// paths of claim files.
type Round struct {
	Remote  map[string]*Entry // the other machines' list; may contain expired claims
	Base    map[string]*Entry // the list that was last applied to this machine's files
	Reset   bool              // Remote was lost and has been recreated since Base
	Files   []claim.Row       // the claims in this machine's files, oldest first
	Removed map[string]bool   // files of claims in Base that were removed
	Agents  map[string]*Agent // all holders, by name
	Machine string            // id of this machine's key
	Now, At time.Time         // the current time on the monotonic clock and on the wall clock

	// IsFile reports whether the code base has a file at a path, as in claim.View.
	IsFile func(path string) bool

	own map[string]claim.Row // the claims in Files, by path
}

// Next is the next version of the list, with the resulting changes on this machine.
type Next struct {
	List    map[string]*Entry
	Lost    map[string]claim.Row // the claims that conflict with this machine's files, by file path
	Granted []claim.Row          // claims granted to the requesting agent, but not written yet

	round *Round
}

// decision is a Next that is being computed.
type decision struct {
	*Next
	leases    *claim.Leases   // the claims in List
	namesakes map[string]bool // paths of claims in List whose holder only shares its name with an agent on this machine
}

// NewEntry returns the entry for a lease that this machine has not seen before. followed reports whether the file at
// path was written for this lease. If it was, and the lease belongs to this machine, the entry expires at the time in
// the file. For any other entry, the duration is counted from now.
func (r *Round) NewEntry(path, blob string, lease format.Lease, followed bool) *Entry {
	left := lease.Length
	if lease.Machine != r.Machine {
		left += Grace
	} else if f, ok := r.files()[path]; ok && f.Created.Equal(lease.Created) && followed {
		left = min(f.Expires.Sub(r.At), left)
	}
	return &Entry{Lease: lease, Until: r.Now.Add(left), Expires: r.wall(left), Blob: blob}
}

// wall converts a remaining duration into a wall-clock expiry time.
func (r *Round) wall(left time.Duration) time.Time { return r.At.Add(left).Truncate(time.Microsecond) }

// files returns the claims in this machine's files, by path.
func (r *Round) files() map[string]claim.Row {
	if r.own == nil {
		r.own = ByPath(r.Files)
	}
	return r.own
}

// ByPath returns a map of claims whose keys are the paths of their files.
func ByPath(rows []claim.Row) map[string]claim.Row {
	by := make(map[string]claim.Row, len(rows))
	for _, c := range rows {
		by[c.Path] = c
	}
	return by
}

// Next computes the next list in three steps. First, it removes claims that were released here. Second, it adds the
// claims that a user created or changed here, or that changed while the list was unreachable. It adds them oldest
// first, unless they conflict. Third, it grants or refuses the request as a whole, and returns the result in res. If
// ask is nil, a claim whose file was removed is treated as released. Next returns any error from claim.Leases.
func (r *Round) Next(ask *claim.Request) (n *Next, res *claim.Result, err error) {
	n = &Next{List: r.live(), Lost: map[string]claim.Row{}, round: r}
	maps.DeleteFunc(n.List, func(path string, e *Entry) bool { return r.givenBack(path, e, ask == nil) })
	d := r.decide(n)
	for i := range r.Files {
		if f := &r.Files[i]; d.asksFor(f) {
			if err := d.enterFile(f); err != nil {
				return nil, nil, err
			}
		}
	}
	if ask != nil {
		if res, err = d.decideAsk(ask); err != nil {
			return nil, nil, err
		}
	}
	return n, res, nil
}

// live returns the list without expired claims. If the list was recreated, live adds the claims in Base.
func (r *Round) live() map[string]*Entry {
	is := map[string]*Entry{}
	lists := []map[string]*Entry{r.Remote}
	if r.Reset {
		lists = []map[string]*Entry{r.Base, r.Remote}
	}
	for _, list := range lists {
		for path, e := range list {
			if r.Now.Before(e.Until) {
				is[path] = e
			}
		}
	}
	return is
}

// hasFollowed reports whether this machine's files already match this version of the entry.
func (r *Round) hasFollowed(path string, e *Entry) bool {
	was := r.Base[path]
	return was != nil && was.Blob == e.Blob
}

// givenBack reports whether a claim in the list was released here. It also returns true for this machine's own claim
// if a user made it expire by editing the file. If removed is set, it also returns true if the file was removed.
func (r *Round) givenBack(path string, e *Entry, removed bool) bool {
	f, here := r.files()[path]
	same := here && f.Created.Equal(e.Created)
	switch {
	// The release mark may have been written while the claim was not in the list.
	case same && f.Released && (r.hasFollowed(path, e) || e.Machine == r.Machine && r.Base[path] == nil):
		return true
	case e.Machine != r.Machine:
		return false
	case here:
		return same && !f.Live(r.At) && !f.Expires.Equal(e.Expires)
	}
	return removed && r.hasFollowed(path, e) && r.Removed[path]
}

// decide returns a decision that starts from the list in n.
func (r *Round) decide(n *Next) *decision {
	d := &decision{Next: n, namesakes: map[string]bool{}}
	var rows []claim.Row
	for path, e := range n.List {
		row := e.Row(path)
		if !r.At.Before(row.Expires) { // the wall clock was set forward
			row.Expires = r.wall(e.Until.Sub(r.Now))
		}
		rows = append(rows, row)
		if e.IsNamesakes(r.Agents[e.Agent]) {
			d.namesakes[path] = true
		}
	}
	const fold = true // another machine may ignore case
	d.leases = claim.LeasesOf(rows, claim.View{Now: r.At, Fold: fold, IsFile: r.IsFile})
	return d
}

// timed returns the entry with a wall-clock expiry that agrees with its monotonic expiry. If the expiry in the file,
// said, is within Grace of the right time, timed returns e unchanged, because each change to a file creates a commit.
func (r *Round) timed(e *Entry, said time.Time) *Entry {
	left := e.Until.Sub(r.Now)
	if off := said.Sub(r.At) - left; off <= Grace && off >= -Grace {
		return e
	}
	again := *e
	again.Expires = r.wall(left)
	return &again
}

// asksFor reports whether the claim in a file must be added to the list. This is the case if the file was created
// here, or if its expiry changed here, either through a user's edit or while the list was unreachable. A file that
// belongs to another machine's agent is never added, because it may come from an old commit.
func (d *decision) asksFor(f *claim.Row) bool {
	r := d.round
	if !f.Live(r.At) {
		return false
	}
	if e := r.Base[f.Path]; e != nil && e.Created.Equal(f.Created) {
		return e.Machine == r.Machine && !f.Expires.Equal(e.Expires)
	}
	a := r.Agents[f.Agent]
	return d.List[f.Path] == nil && (a == nil || !a.Elsewhere)
}

// enterFile adds the claim in a file to the list, unless another claim conflicts with it.
func (d *decision) enterFile(f *claim.Row) error {
	ask := &claim.Request{Agent: f.Agent, Patterns: []string{f.Pattern}, Shared: !f.Exclusive, Namesakes: d.namesakes}
	found, _, err := d.leases.Conflicts(ask)
	switch {
	case err != nil:
		return err
	case len(found) > 0:
		d.Lost[f.Path] = found[0].Held
	default:
		d.put(f, min(f.Expires.Sub(d.round.At), format.MaxLease))
	}
	return nil
}

// decideAsk grants or refuses a request.
func (d *decision) decideAsk(ask *claim.Request) (res *claim.Result, err error) {
	with := *ask
	with.Namesakes = d.namesakes
	res = &claim.Result{}
	if res.Conflicts, res.More, err = d.leases.Conflicts(&with); err != nil || len(res.Conflicts) > 0 {
		return res, err
	}
	at := d.round.At
	res.Expires = at.Add(ask.TTL).Truncate(time.Microsecond)
	res.Granted, res.Renewed = d.leases.Grants(&with, at, res.Expires)
	if ask.DryRun {
		return res, nil
	}
	d.Granted = res.Granted
	for i := range res.Granted {
		d.put(&res.Granted[i], ask.TTL)
	}
	return res, nil
}

// put adds this machine's claim to the list, or renews the claim if the list already contains it.
func (d *decision) put(f *claim.Row, length time.Duration) {
	r := d.round
	e := &Entry{
		Lease:   format.Lease{Claim: f.Claim, Length: length.Round(time.Second), Machine: r.Machine},
		Until:   r.Now.Add(length),
		Expires: f.Expires,
	}
	if a := r.Agents[f.Agent]; a != nil {
		e.Inception = a.Inception
	}
	if was := d.List[f.Path]; was != nil {
		e.Renewal = was.Renewal + 1
	}
	d.List[f.Path] = e
	delete(d.namesakes, f.Path)
	d.leases.Put(e.Row(f.Path))
}

// Followed returns the list to keep once the files have been updated. In this list, each entry's wall-clock expiry
// agrees with its monotonic expiry.
func (n *Next) Followed() map[string]*Entry {
	list := make(map[string]*Entry, len(n.List))
	for path, e := range n.List {
		list[path] = n.round.timed(e, n.round.files()[path].Expires)
	}
	return list
}

// Follow returns the claims whose files must be written, and the claims that must be released, so that the files agree
// with the list. The parameter now maps each claim file to its current claim. ok is false if one of these files has
// changed since the round began.
func (n *Next) Follow(now map[string]claim.Row) (write, ended []claim.Row, ok bool) {
	own := n.round.files()
	for path, e := range n.Followed() {
		was := own[path]
		if n.isGranted(path) { // the file was just written
			was = now[path]
		}
		row := e.Row(path)
		row.Reason = was.Reason
		if was == row {
			continue
		}
		if now[path] != was {
			return nil, nil, false
		}
		row.Reason = e.Reason
		write = append(write, row)
	}
	for _, f := range n.Ended() {
		if now[f.Path] != f {
			return nil, nil, false
		}
		ended = append(ended, f)
	}
	return write, ended, true
}

func (n *Next) isGranted(path string) bool {
	return slices.ContainsFunc(n.Granted, func(g claim.Row) bool { return g.Path == path })
}

// Ended returns the claims in this machine's files that have not expired but are missing from the list.
func (n *Next) Ended() []claim.Row {
	return slices.DeleteFunc(slices.Clone(n.round.Files), func(f claim.Row) bool { return !f.Live(n.round.At) || n.List[f.Path] != nil })
}

// IsNews reports whether the holder of an ended claim must be notified. This is the case if another claim conflicts
// with it, or if this machine's claim was removed from the list before it expired. A claim that simply expires causes
// no notice.
func (n *Next) IsNews(f *claim.Row) bool {
	if _, lost := n.Lost[f.Path]; lost {
		return true
	}
	e := n.round.Base[f.Path]
	return e != nil && e.Machine == n.round.Machine && n.round.Now.Before(e.Until)
}
