// Package claim holds the rules of claims: which of them are in force, what a request meets, and
// what stands in a commit's way.
//
//   - Leases keeps the claims of a project in memory for the server; Look gives one consistent view of them.
//   - Files reads the claim files of a tree without an index, for the guard; an Intent says which of them block it.
//   - Row is one claim with its file; Request, Result and Conflict are what the claim verb takes and answers.
//
// A claim ends when its file says, by the wall clock, for server and guard alike.
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

// Leases are a project's claims in memory: rows of the index with their patterns compiled, so that
// a claim is held against a thousand others without reading them from the database. The index stays
// the truth: what changed there is read again before the next look. A lease ends when its file
// says, by the wall clock, for the server and for the guard. Safe for concurrent use; NewLeases
// makes one.
type Leases struct {
	mu     sync.Mutex // held while they are looked at
	all    []slot     // by created, agent, path, as the index lists them
	byPath map[string]*Row
	agents map[string]int32 // a number for each name, to compare it at once
	loaded bool
	now    int64                  // of this look: µs since 1970
	fold   bool                   // of this look: letters match whatever their case
	isFile func(path string) bool // in the code repository, as far as that is known

	changing sync.Mutex
	changed  map[string]bool // claim files that changed since the last look
}

// slot is what is looked at of every claim, side by side: to reach for ten thousand claims one by
// one takes longer than all the rest.
type slot struct {
	until     int64 // as Leases.now; 0 for one that was released
	agent     int32
	exclusive bool
	pattern   *glob.Pattern // nil: not compiled yet
	row       *Row          // as the index has it
}

// Source is where claims are read from: the index.
type Source interface {
	// Claims lists every valid claim file of the project, by created, agent and path.
	Claims(ctx context.Context, project string) ([]Row, error)
	// ClaimsAt lists those at paths, in the same order.
	ClaimsAt(ctx context.Context, project string, paths []string) ([]Row, error)
}

// View is what one look at the leases takes from outside.
type View struct {
	Now    time.Time
	Fold   bool                   // letters match whatever their case
	IsFile func(path string) bool // in the code repository, as far as that is known
}

// NewLeases returns leases that are read from the source at the first look.
func NewLeases() *Leases {
	return &Leases{byPath: map[string]*Row{}, agents: map[string]int32{}, changed: map[string]bool{}}
}

// Changed notes that the index changed at a path; what is no claim nor its mark changes nothing.
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

// Look calls f with the claims as the source has them now, while nobody else looks. Errors: the
// source's, and f's.
func (l *Leases) Look(ctx context.Context, from Source, project string, view View, f func(l *Leases) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.level(ctx, from, project); err != nil {
		return err
	}
	l.now, l.isFile = view.Now.UnixMicro(), view.IsFile
	if view.Fold != l.fold {
		l.fold = view.Fold
		for i := range l.all {
			l.all[i].pattern = nil
		}
	}
	return f(l)
}

// Select lists, within a look, the claims that pass, by created, agent and path.
func (l *Leases) Select(pass func(c *Row, live bool) bool) []Row {
	rows := []Row{}
	for i := range l.all {
		if s := &l.all[i]; pass(s.row, l.live(s)) {
			rows = append(rows, *s.row)
		}
	}
	return rows
}

// level reads what changed, at first everything.
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
	if err != nil { // the next look reads them
		l.changing.Lock()
		defer l.changing.Unlock()
		maps.Copy(l.changed, changed)
		return err
	}
	l.replaceRows(rows, changed)
	l.loaded = true
	return nil
}

// replaceRows puts rows in the place of what is known of the changed paths.
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

// place is where the claim is in the list, or belongs.
func (l *Leases) place(c *Row) int {
	i, _ := slices.BinarySearchFunc(l.all, c, func(s slot, c *Row) int { return byAge(s.row, c) })
	return i
}

// number is the agent's number.
func (l *Leases) number(agent string) int32 {
	n, known := l.agents[agent]
	if !known {
		n = int32(len(l.agents))
		l.agents[agent] = n
	}
	return n
}

func (l *Leases) live(s *slot) bool { return l.now < s.until }

// overlaps reports whether some path matches the claim and the pattern asked for. A path without
// wildcards stands for all that may lie below it, but not where the code repository has a file
// there: a claim of README.md keeps nobody from **/*.go. A claim whose pattern is not valid never
// gets into the index.
func (l *Leases) overlaps(s *slot, asked *glob.Pattern) bool {
	if s.pattern == nil {
		var err error
		if s.pattern, err = glob.Compile(s.row.Pattern, l.fold); err != nil {
			return false
		}
	}
	return s.pattern.Overlaps(asked) && l.below(s.pattern, asked) && l.below(asked, s.pattern)
}

// below reports whether q, which overlaps p, matches p's own path, or whether something may lie
// below that.
func (l *Leases) below(p, q *glob.Pattern) bool {
	return p.Literal() == "" || q.Covers(p.Literal()) || !l.isFile(p.Literal())
}
