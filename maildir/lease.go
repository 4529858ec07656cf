package maildir

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// leases are a project's claims in memory: rows of the index with their patterns compiled, so that a claim is held
// against thousands without reading them all from the database, and with what must not be forgotten about each while
// the process runs: how far the wall clock had jumped when its end was first seen. The index stays the truth: what
// changed there is read again before the next look.
type leases struct {
	mu     sync.Mutex // held while they are looked at
	all    []*lease   // by created, agent, path, as the index lists them
	byPath map[string]*lease
	loaded bool
	now    time.Time     // by the wall clock, of this look
	jumped time.Duration // of this look
	fold   bool          // of this look: letters match whatever their case

	changing sync.Mutex
	born     time.Duration            // how far the wall clock had jumped when the project was opened
	changed  map[string]time.Duration // claim files that changed since the last look, with how far it had jumped then
}

// lease is one claim.
type lease struct {
	row     ClaimRow      // as the index has it
	jumped  time.Duration // of the wall clock when its end was first seen
	pattern *Pattern      // nil: not compiled yet
}

// note is told of every change of the index.
func (l *leases) note(changes []Change, jumped time.Duration) {
	l.changing.Lock()
	defer l.changing.Unlock()
	for _, c := range changes {
		switch c.Kind {
		case KindClaim:
			l.changed[c.Path] = jumped
		case KindReleased:
			l.changed[claimOfMark(c.Path)] = jumped
		}
	}
}

// lookAtClaims calls f with the project's claims as the index has them now, while nobody else looks: f does not wait for files.
func (p *Project) lookAtClaims(ctx context.Context, f func(l *leases) error) error {
	l := &p.leases
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.level(ctx, p.store.index, p.slug); err != nil {
		return err
	}
	l.now, l.jumped = p.store.clock.read()
	if fold := p.code.ignoresCase(p.human); fold != l.fold {
		l.fold = fold
		for _, c := range l.all {
			c.pattern = nil
		}
	}
	return f(l)
}

// level reads what changed, at first everything.
func (l *leases) level(ctx context.Context, index Index, slug string) error {
	l.changing.Lock()
	changed := l.changed
	l.changed = map[string]time.Duration{}
	l.changing.Unlock()
	if l.loaded && len(changed) == 0 {
		return nil
	}
	paths := make([]string, 0, len(changed))
	for path := range changed {
		paths = append(paths, path)
	}
	var rows []ClaimRow
	var err error
	if l.loaded {
		rows, err = index.ClaimsAt(ctx, slug, paths)
	} else {
		rows, err = index.Claims(ctx, slug)
	}
	if err != nil { // the next look reads them
		l.changing.Lock()
		defer l.changing.Unlock()
		for path, jumped := range changed {
			if _, again := l.changed[path]; !again {
				l.changed[path] = jumped
			}
		}
		return err
	}
	l.take(rows, changed)
	l.loaded = true
	return nil
}

// take puts rows in the place of what is known of the changed paths.
func (l *leases) take(rows []ClaimRow, changed map[string]time.Duration) {
	was := map[string]*lease{}
	for path := range changed {
		if c := l.byPath[path]; c != nil {
			was[path] = c
			delete(l.byPath, path)
			i, _ := slices.BinarySearchFunc(l.all, c, (*lease).compare)
			l.all = slices.Delete(l.all, i, i+1)
		}
	}
	for _, row := range rows {
		c := &lease{row: row, jumped: l.born}
		if jumped, is := changed[row.Path]; is {
			c.jumped = jumped
		}
		if old := was[row.Path]; old != nil {
			if old.row.Expires.Equal(row.Expires) {
				c.jumped = old.jumped
			}
			if old.row.Pattern == row.Pattern {
				c.pattern = old.pattern
			}
		}
		l.byPath[row.Path] = c
		i, _ := slices.BinarySearchFunc(l.all, c, (*lease).compare)
		l.all = slices.Insert(l.all, i, c)
	}
}

func (c *lease) compare(d *lease) int {
	return cmp.Or(c.row.Created.Compare(d.row.Created), strings.Compare(c.row.Agent, d.row.Agent), strings.Compare(c.row.Path, d.row.Path))
}

// ends is when the claim ends by the wall clock as it stands now: jumps since it was first seen aside.
func (l *leases) ends(c *lease) time.Time { return c.row.Expires.Add(l.jumped - c.jumped) }

func (l *leases) live(c *lease) bool { return !c.row.Released && l.now.Before(l.ends(c)) }

// row is the claim with its end by the wall clock as it stands now.
func (l *leases) row(c *lease) ClaimRow {
	r := c.row
	r.Expires = l.ends(c)
	return r
}

// overlaps reports whether some path matches the claim and the pattern asked for. A claim whose pattern is not valid
// never gets into the index.
func (l *leases) overlaps(c *lease, asked *Pattern) bool {
	if c.pattern == nil {
		var err error
		if c.pattern, err = CompilePattern(c.row.Pattern, l.fold); err != nil {
			return false
		}
	}
	return c.pattern.Overlaps(asked)
}
