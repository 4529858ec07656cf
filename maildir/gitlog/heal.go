package gitlog

import (
	"context"
	"maps"
	"slices"
	"time"
)

const (
	healTime = time.Second   // after a commit nearly every git command that ran beside it has ended
	keepTime = 10 * healTime // after that also the slowest has
)

// ownCommit is a commit of ours that a git command which runs beside us may still undo in the
// index.
type ownCommit struct {
	changes []*change
	at      time.Time
}

// keepOwn remembers a commit, and forgets those that nothing can undo any more.
func (m *memory) keepOwn(changes []*change) {
	for _, c := range changes {
		c.data = nil
	}
	m.own = append(m.own, ownCommit{changes, time.Now()})
}

func (m *memory) forgetOld() {
	m.own = slices.DeleteFunc(m.own, func(c ownCommit) bool { return time.Since(c.at) >= keepTime })
}

// state is an index and the commit that HEAD is at.
type state struct {
	index seen
	head  hash
}

func (s state) sameState(t state) bool { return s.head == t.head && s.index.sameIndex(t.index) }

// heal finishes a move that was interrupted and looks whether the last commits still stand in index and branch,
// as every commit does (publish). The caller holds the turn.
func (l *Log) heal(ctx context.Context) error { return l.commit(ctx, batch{}) }

// undone tells what the index lacks of our last commits, where somebody has written an index back that he
// had read before them: `git commit -a`, `git stash pop` and others read the index before they lock it, and
// lockAfter may be too short for them. A person's next commit from such an index takes the new mail away; what it
// took is handed over as edits, as catchUp does when it finds the same at a start.
//
// A commit is undone where nothing of it is there: none of the paths that it added, or where it added none, none of
// all its paths. `git commit -a` brings the others back by itself, and who unstages files by hand seldom
// unstages exactly those.
func (l *Log) undone(p *publication) (inIndex []*change, err error) {
	if level := (state{p.seen, p.at.commit}).sameState(l.mem.level); level || !p.seen.exists {
		return nil, nil
	}
	before := map[string][]entry{} // what was at the paths before each of the commits
	var commits [][]*change        // each path with the last that changed it
	for _, own := range slices.Backward(l.mem.own) {
		commits = append(commits, slices.DeleteFunc(slices.Clone(own.changes), func(c *change) bool { return before[c.path] != nil }))
		for _, c := range own.changes {
			before[c.path] = append(before[c.path], c.old)
		}
	}
	if len(before) == 0 {
		return nil, nil
	}
	staged, err := p.repo.staged(p.at.commit, func(path []byte) bool { return before[string(path)] != nil })
	if err != nil {
		return nil, err
	}
	head, _, err := p.repo.entries(p.at.commit, slices.Collect(maps.Keys(before))...)
	if err != nil {
		return nil, err
	}
	isOld := func(c *change, now entry) bool { return now != c.new && slices.Contains(before[c.path], now) }
	stands := func(c *change) bool { return !isOld(c, head[c.path]) }
	isStaged := func(c *change) bool {
		now, ok := staged[c.path]
		return ok && !isOld(c, now) || !ok && stands(c)
	}
	var dropped []string
	for _, changes := range commits {
		telling := slices.DeleteFunc(slices.Clone(changes), func(c *change) bool { return c.old.Mode != 0 })
		if len(telling) == 0 {
			telling = changes
		}
		if !slices.ContainsFunc(telling, stands) {
			for _, c := range changes {
				dropped = append(dropped, c.path)
			}
		} else if !slices.ContainsFunc(telling, isStaged) {
			inIndex = append(inIndex, slices.DeleteFunc(changes, func(c *change) bool { return isStaged(c) || !stands(c) })...)
		}
	}
	l.Edited(dropped)
	return inIndex, nil
}

// settle notes a round that has looked at the last commits, and when to look again: after how long, where there are
// any that something may still undo.
func (l *Log) settle(level state, after time.Duration) {
	l.mem.level = level
	l.mem.forgetOld()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.look = (time.Time{}); len(l.mem.own) > 0 {
		l.look = time.Now().Add(after)
	}
}
