// Package claim contains the rules for claims: which claims are live, which claims conflict with a request, and which
// claims block a commit.
//
//   - Leases keeps a project's claims in memory for the server. Look provides a consistent view of these claims.
//   - Files reads a tree's claim files without an index, for the guard. An Intent determines the blocking claims.
//   - Row is one claim with its file. Request, Result and Conflict describe the request and the result of a claim call.
//
// For both the server and the guard, a claim expires when the wall clock reaches the time in its file.
package claim

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/glob"
)

// Leases keeps a project's claims in memory as index rows with compiled patterns, so that a request can be compared
// with thousands of claims without reading the database. The index is authoritative: Look first rereads the rows that
// have changed. Leases is safe for concurrent use. Use NewLeases to create one.
type Leases struct {
	mu     sync.Mutex // held during Look
	all    []slot     // ordered by created, agent, path, as in the index
	byPath map[string]*Row
	agents map[string]int32 // a number for each agent name, because numbers compare faster than names
	loaded bool
	now    int64                  // time of the current Look, in µs since 1970
	fold   bool                   // whether the current Look ignores case
	isFile func(path string) bool // reports whether the code repository is known to have a file at path

	changing sync.Mutex
	changed  map[string]bool // claim files that have changed since the last Look
}

// slot contains the fields of a claim that every Look reads, so that they are adjacent in memory. Following a pointer
// for each of ten thousand claims would take longer than the rest of the Look.
type slot struct {
	until     int64 // expiry, in the same unit as Leases.now; 0 for a released claim
	agent     int32
	exclusive bool
	pattern   *glob.Pattern // nil if not compiled yet
	row       *Row          // the claim as stored in the index
}

// Source is the index, from which Leases reads claims.
type Source interface {
	// Claims lists the project's valid claim files, ordered by created, agent and path.
	Claims(ctx context.Context, project string) ([]Row, error)
	// ClaimsAt is like Claims, but only for the given paths.
	ClaimsAt(ctx context.Context, project string, paths []string) ([]Row, error)
}

// View contains the information that Look needs in addition to the claims.
type View struct {
	Now    time.Time
	Fold   bool                   // ignore case
	IsFile func(path string) bool // reports whether the code repository is known to have a file at path
}

// NewLeases returns Leases without claims. The first Look reads all claims.
func NewLeases() *Leases {
	return &Leases{byPath: map[string]*Row{}, agents: map[string]int32{}, changed: map[string]bool{}}
}

// LeasesOf returns Leases for a caller that already has all the claims. The caller may call only Conflicts, Grants and
// Put on the result. These calls do not require a prior call to Look.
func LeasesOf(rows []Row, view View) *Leases {
	l := NewLeases()
	l.loaded = true
	l.see(view)
	l.replaceRows(rows, nil)
	return l
}

// Put adds a claim, or replaces the existing claim with the same file.
func (l *Leases) Put(row Row) { l.replaceRows([]Row{row}, map[string]bool{row.Path: true}) }

// Changed records that the index has changed at a path. It ignores a path that is neither a claim nor a release mark.
func (l *Leases) Changed(path string, kind format.Kind) {
	l.changing.Lock()
	defer l.changing.Unlock()
	switch kind {
	case format.KindClaim:
		l.changed[path] = true
	case format.KindReleased:
		l.changed[format.ClaimOfMark(path)] = true
	}
}

// Look calls f with the source's current claims. Only one Look runs at a time. Look returns any error from the source
// or f.
func (l *Leases) Look(ctx context.Context, from Source, project string, view View, f func(l *Leases) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.level(ctx, from, project); err != nil {
		return err
	}
	l.see(view)
	return f(l)
}

// see sets the view for the current Look.
func (l *Leases) see(view View) {
	l.now, l.isFile = view.Now.UnixMicro(), view.IsFile
	if view.Fold != l.fold {
		l.fold = view.Fold
		for i := range l.all {
			l.all[i].pattern = nil
		}
	}
}

// Select lists the claims that pass accepts, ordered by created, agent and path. Call Select only within Look.
func (l *Leases) Select(pass func(c *Row, live bool) bool) []Row {
	rows := []Row{}
	for i := range l.all {
		if s := &l.all[i]; pass(s.row, l.live(s)) {
			rows = append(rows, *s.row)
		}
	}
	return rows
}

// level brings the claims up to date with the index. The first call reads all claims. Later calls read only the changed
// claims.
func (l *Leases) level(ctx context.Context, from Source, project string) error {
	l.changing.Lock()
	changed := l.changed
	l.changed = map[string]bool{}
	l.changing.Unlock()
	if l.loaded && len(changed) == 0 {
		return nil
	}
	paths := make([]string, 0, len(changed))
	for path := range changed {
		paths = append(paths, path)
	}
	var rows []Row
	var err error
	if l.loaded {
		rows, err = from.ClaimsAt(ctx, project, paths)
	} else {
		rows, err = from.Claims(ctx, project)
	}
	if err != nil { // the next Look reads the changed claims again
		l.changing.Lock()
		defer l.changing.Unlock()
		maps.Copy(l.changed, changed)
		return err
	}
	l.replaceRows(rows, changed)
	l.loaded = true
	return nil
}

// replaceRows replaces the claims at the changed paths with rows.
func (l *Leases) replaceRows(rows []Row, changed map[string]bool) {
	was := map[string]slot{}
	for path := range changed {
		if c := l.byPath[path]; c != nil {
			i := l.place(c)
			was[path] = l.all[i]
			delete(l.byPath, path)
			l.all = slices.Delete(l.all, i, i+1)
		}
	}
	for i := range rows {
		row := &rows[i]
		s := slot{agent: l.number(row.Agent), exclusive: row.Exclusive, row: row}
		if old := was[row.Path]; old.row != nil && old.row.Pattern == row.Pattern {
			s.pattern = old.pattern
		}
		if !row.Released {
			s.until = row.Expires.UnixMicro()
		}
		l.byPath[row.Path] = row
		l.all = slices.Insert(l.all, l.place(row), s)
	}
}

// place returns the claim's index in the list, or the index at which to insert the claim.
func (l *Leases) place(c *Row) int {
	i, _ := slices.BinarySearchFunc(l.all, c, func(s slot, c *Row) int { return byAge(s.row, c) })
	return i
}

// number returns the agent's number, and assigns one if the agent is new.
func (l *Leases) number(agent string) int32 {
	n, known := l.agents[agent]
	if !known {
		n = int32(len(l.agents))
		l.agents[agent] = n
	}
	return n
}

func (l *Leases) live(s *slot) bool { return l.now < s.until }

// overlaps reports whether any path can match both the claim and the requested pattern. A pattern without wildcards
// also covers everything below its path, unless the code repository has a file at that path. For example, a claim on
// the file README.md does not block **/*.go. The index never contains a claim with an invalid pattern.
func (l *Leases) overlaps(s *slot, asked *glob.Pattern) bool {
	if s.pattern == nil {
		var err error
		if s.pattern, err = glob.Compile(s.row.Pattern, l.fold); err != nil {
			return false
		}
	}
	return s.pattern.Overlaps(asked) && l.below(s.pattern, asked) && l.below(asked, s.pattern)
}

// below reports whether two overlapping patterns still overlap when the files in the code repository are taken into
// account. It returns false if p has no wildcards, the repository has a file at p's path, and q does not cover that
// path.
func (l *Leases) below(p, q *glob.Pattern) bool {
	return p.Literal() == "" || q.Covers(p.Literal()) || !l.isFile(p.Literal())
}
