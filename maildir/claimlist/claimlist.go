// Package claimlist decides what becomes of the list of claims that machines share, in a round of one machine. It
// compares values: it reads no file, no index and no clock, and it writes nothing. Package peers reads the list, calls
// Next, pushes the result, and makes the claim files follow it. See docs/sync.md, "Claims".
package claimlist

import (
	"maps"
	"slices"
	"time"

	"mailtree/maildir/claim"
	"mailtree/maildir/format"
)

// Grace is how much longer than its length a claim of another machine counts, from when this machine first saw it:
// its holder's machine counts from when it was made, and is told later.
const Grace = time.Minute

// Entry is a claim in the list, as this machine counts it. An Entry that was made does not change.
type Entry struct {
	format.Lease
	Until   time.Time // when it ends, by the monotonic clock
	Expires time.Time // when it ends, as the claim's file on this machine says
	Blob    string    // Git's name of the content; "": not written yet
}

// Row returns the claim as this machine's file at path has it.
func (e *Entry) Row(path string) claim.Row {
	row := claim.Row{Claim: e.Claim, Path: path}
	row.Expires = e.Expires
	return row
}

// Agent is an agent of this machine's mail, as far as it matters for claims.
type Agent struct {
	Inception time.Time
	Person    bool // it stands for a person, who is one on all machines
	Elsewhere bool // it belongs to another machine
}

// IsNamesakes reports whether the claim is that of another agent than the one which has its holder's name on this
// machine; nil: none has it.
func (e *Entry) IsNamesakes(a *Agent) bool {
	return a != nil && !a.Person && !e.Inception.IsZero() && !a.Inception.Equal(e.Inception)
}

// Round is what one machine knows before it changes the list. All maps are by path of the claim's file.
type Round struct {
	Remote  map[string]*Entry // the list as the other machines have it; ended claims may be in it
	Base    map[string]*Entry // the list that the files of this machine have followed
	Reset   bool              // Remote was lost and was made anew since
	Files   []claim.Row       // what the files of this machine say, the oldest first
	Removed map[string]bool   // files that followed the list and that somebody has removed
	Agents  map[string]*Agent // by name, of all holders
	Machine string            // id of this machine's key
	Now, At time.Time         // by the monotonic and by the wall clock

	// IsFile reports whether the code base has a file at a path, as claim.View says.
	IsFile func(path string) bool

	own map[string]claim.Row // Files by path
}

// Next is the list as it shall be, and what this machine has to do for it.
type Next struct {
	List    map[string]*Entry
	Lost    map[string]claim.Row // the claim that is in the way of a file of this machine, by the path of the file
	Granted []claim.Row          // to the agent that asks; not written yet

	round *Round
}

// decision is a Next that is being made.
type decision struct {
	*Next
	leases    *claim.Leases   // of List
	namesakes map[string]bool // claims in List whose holder is not the agent of this machine that has its name
}

// NewEntry returns the entry of a lease that this machine has not seen before, in the list at path. followed says
// whether the file here has followed it. Of this machine's own leases the file says when they end; any other counts
// from now.
func (r *Round) NewEntry(path, blob string, lease format.Lease, followed bool) *Entry {
	left := lease.Length
	if lease.Machine != r.Machine {
		left += Grace
	} else if f, ok := r.files()[path]; ok && f.Created.Equal(lease.Created) && followed {
		left = min(f.Expires.Sub(r.At), left)
	}
	return &Entry{Lease: lease, Until: r.Now.Add(left), Expires: r.wall(left), Blob: blob}
}

// wall returns the time on the wall clock when so much is left.
func (r *Round) wall(left time.Duration) time.Time { return r.At.Add(left).Truncate(time.Microsecond) }

// files returns what the files of this machine say, by path.
func (r *Round) files() map[string]claim.Row {
	if r.own == nil {
		r.own = ByPath(r.Files)
	}
	return r.own
}

// ByPath returns claims by the paths of their files.
func ByPath(rows []claim.Row) map[string]claim.Row {
	by := make(map[string]claim.Row, len(rows))
	for _, c := range rows {
		by[c.Path] = c
	}
	return by
}

// Next decides in four steps. What was given back here leaves the list. What was made or changed here by hand, or while
// the list could not be asked, gets into it, the oldest first, unless another claim is in its way. The request is
// granted whole or not at all; its answer is in res. Each entry ends on the wall clock when it ends on the monotonic
// clock. Without a request, files that somebody has removed count as given back. It returns the errors of claim.Leases.
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
	for path, e := range n.List {
		n.List[path] = r.timed(e, r.files()[path].Expires)
	}
	return n, res, nil
}

// live returns the list without ended claims. A list that was made anew gets what the files here have followed.
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

// hasFollowed reports whether the file at path has followed the entry.
func (r *Round) hasFollowed(path string, e *Entry) bool {
	was := r.Base[path]
	return was != nil && was.Blob == e.Blob
}

// givenBack reports whether a claim in the list was released here. With removed this includes a claim of this machine
// whose file somebody has removed or made to end.
func (r *Round) givenBack(path string, e *Entry, removed bool) bool {
	f, here := r.files()[path]
	same := here && f.Created.Equal(e.Created)
	switch {
	// A mark may also follow a list that lacked the claim, as it does until its release is undone.
	case same && f.Released && (r.hasFollowed(path, e) || e.Machine == r.Machine && r.Base[path] == nil):
		return true
	case e.Machine != r.Machine:
		return false
	case here:
		return same && !f.Live(r.At) && !f.Expires.Equal(e.Expires)
	}
	return removed && r.hasFollowed(path, e) && r.Removed[path]
}

// decide returns a decision about the list n.
func (r *Round) decide(n *Next) *decision {
	d := &decision{Next: n, namesakes: map[string]bool{}}
	var rows []claim.Row
	for path, e := range n.List {
		rows = append(rows, r.timed(e, e.Expires).Row(path))
		if e.IsNamesakes(r.Agents[e.Agent]) {
			d.namesakes[path] = true
		}
	}
	const fold = true // whether some machine ignores case is not known
	d.leases = claim.LeasesOf(rows, claim.View{Now: r.At, Fold: fold, IsFile: r.IsFile})
	return d
}

// timed returns an entry that ends on the wall clock when it ends on the monotonic clock. It keeps the end that was
// said before if that is right within Grace, because each change of a file is a commit.
func (r *Round) timed(e *Entry, said time.Time) *Entry {
	left := e.Until.Sub(r.Now)
	if off := said.Sub(r.At) - left; off <= Grace && off >= -Grace {
		return e
	}
	again := *e
	again.Expires = r.wall(left)
	return &again
}

// asksFor reports whether a file is to get into the list: it was made here, or its end was changed, while the list
// could not be asked or by hand. A file of another machine's agent never is: an old commit may bring it.
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

// enterFile puts the claim of a file into the list, unless another is in its way.
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

// decideAsk decides a request.
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

// put puts a claim of this machine into the list, or renews it there.
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
	d.leases.Put(e.Row(f.Path))
}

// Follow returns the claims whose files have to be written, and those that have to be released, so that the files here
// are as the list. now are the files as they are; ok is false if one of these was changed since the round began.
func (n *Next) Follow(now map[string]claim.Row) (write, ended []claim.Row, ok bool) {
	own := n.round.files()
	for path, e := range n.List {
		was := own[path]
		if n.isGranted(path) { // it was written just now
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

// Ended returns the claims in force of the files here that the list lacks.
func (n *Next) Ended() []claim.Row {
	return slices.DeleteFunc(slices.Clone(n.round.Files), func(f claim.Row) bool { return !f.Live(n.round.At) || n.List[f.Path] != nil })
}

// IsNews reports whether the holder of an ended claim has to be told: another claim was in its way, or it was one of
// this machine and left the list before its time. What has run out is no news.
func (n *Next) IsNews(f *claim.Row) bool {
	if _, lost := n.Lost[f.Path]; lost {
		return true
	}
	e := n.round.Base[f.Path]
	return e != nil && e.Machine == n.round.Machine && n.round.Now.Before(e.Until)
}
