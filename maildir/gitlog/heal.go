package gitlog

import (
	"context"
	"maps"
	"slices"
	"time"
)

const (
	healTime = time.Second   // after this time, nearly every git command that was running during the commit has ended
	keepTime = 10 * healTime // after this time, even the slowest such command has ended
)

// ownCommit is one of our commits that a concurrent git command may still remove from the index.
type ownCommit struct {
	changes []*change
	at      time.Time
}

// keepOwn keeps a commit until forgetOld drops it.
func (m *memory) keepOwn(changes []*change) {
	for _, c := range changes {
		c.data = nil
	}
	m.own = append(m.own, ownCommit{changes, time.Now()})
}

func (m *memory) forgetOld() {
	m.own = slices.DeleteFunc(m.own, func(c ownCommit) bool { return time.Since(c.at) >= keepTime })
}

// state describes the index and the HEAD commit.
type state struct {
	index indexState
	head  hash
}

func (s state) sameState(t state) bool { return s.head == t.head && s.index.sameIndex(t.index) }

// heal finishes an interrupted move of the branch, and checks that the index and the branch still contain our last
// commits. Every commit does this too (publish). The caller must hold l.turn.
func (l *Log) heal(ctx context.Context) error { return l.commit(ctx, batch{}) }

// undone returns the changes from our last commits that are missing from the index because a git command has written
// back an index that it read before those commits. `git commit -a`, `git stash pop` and other commands read the index
// before they lock it, and lockAfter may be too short for these commands. If a user then commits that index, the commit
// removes the new mail. In that case, undone records the removed files as edits, as catchUp does when the server
// starts.
//
// A commit is considered undone if none of the paths that it added remain. Paths that it only changed are not
// considered, because `git commit -a` restores them itself. If the commit added no paths, all of its changed paths
// must have been undone. It is unlikely that a user unstages exactly these paths.
func (l *Log) undone(p *publication) (inIndex []*change, err error) {
	if level := (state{p.base, p.at.commit}).sameState(l.mem.level); level || !p.base.exists || l.embedded {
		return nil, nil
	}
	before := map[string][]entry{} // the entries of each path before each of our commits
	var commits [][]*change        // each path is listed only with the last commit that changed it
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
	head, err := p.repo.entries(p.at.commit, slices.Collect(maps.Keys(before))...)
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
	l.RecordEdits(dropped)
	return inIndex, nil
}

// settle records that a round has checked our last commits. If a git command may still undo one of them, settle
// schedules another check after the given time.
func (l *Log) settle(level state, after time.Duration) {
	l.mem.level = level
	l.mem.forgetOld()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.look = (time.Time{}); len(l.mem.own) > 0 {
		l.look = time.Now().Add(after)
	}
}
