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
	m.forgetOld()
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
// as every commit does before it begins (openReady). The caller holds the turn.
func (l *Log) heal(ctx context.Context) error { return l.commit(ctx, batch{}) }

// followOwn brings the index level with the branch where somebody has written an index back that he
// had read before our last commits: `git commit -a`, `git stash pop` and others read the index
// before they lock it, and lockAfter may be too short for them. A person's next commit from such an
// index takes the new mail away; what it took is handed over as edits, as catchUp does when it
// finds the same at a start. errMoved: somebody has written the index meanwhile.
func (l *Log) followOwn(repo *repository, at head) error {
	if len(l.mem.own) == 0 {
		return nil
	}
	index, err := repo.seeIndex()
	if err != nil {
		return err
	}
	now := state{index, at.commit}
	if !index.exists || now.sameState(l.mem.level) {
		return nil
	}
	if _, err := repo.checkIndex(); err != nil {
		return err
	}
	found, err := repo.undone(at.commit, l.mem.own)
	if err != nil {
		return err
	}
	l.Edited(found.inHead)
	if len(found.inIndex) == 0 {
		l.mem.level = now
		return nil
	}
	err = repo.restage(at, index, found.inIndex)
	if err == nil {
		l.cfg.Log.Info("git index brought level with the branch", "files", len(found.inIndex))
	}
	return err
}

// undoing is what somebody has undone of our last commits.
type undoing struct {
	inHead  []string
	inIndex []*change
}

// undone looks for our last commits in HEAD and in the index. A commit is undone where nothing of
// it is there: none of the paths that it added, or where it added none, none of all its paths. `git
// commit -a` brings the others back by itself, and who unstages files by hand seldom unstages
// exactly those.
func (r *repository) undone(at hash, own []ownCommit) (found undoing, err error) {
	of, before := traces(own)
	other, err := r.staged(at, func(path []byte) bool { return before[string(path)] != nil })
	if err != nil {
		return found, err
	}
	head, _, err := r.entries(at, slices.Collect(maps.Keys(before))...)
	if err != nil {
		return found, err
	}
	inHead := func(c *change) bool { return isUndone(c, head[c.path], before) }
	inIndex := func(c *change) bool {
		now, ok := other[c.path]
		if !ok {
			now = head[c.path]
		}
		return isUndone(c, now, before)
	}
	for _, changes := range of {
		telling := slices.DeleteFunc(slices.Clone(changes), func(c *change) bool { return c.old.Mode != 0 })
		if len(telling) == 0 {
			telling = changes
		}
		switch {
		case allOf(telling, inHead):
			found.inHead = append(found.inHead, pathsOf(changes)...)
		case allOf(telling, inIndex):
			level := func(c *change) bool { return !inIndex(c) || inHead(c) }
			found.inIndex = append(found.inIndex, slices.DeleteFunc(changes, level)...)
		}
	}
	return found, nil
}

// traces returns the changes of the commits, each path with the last one that changed it, and what
// was at the paths before each of them.
func traces(own []ownCommit) (of [][]*change, before map[string][]entry) {
	before = map[string][]entry{}
	for _, c := range slices.Backward(own) {
		of = append(of, slices.DeleteFunc(slices.Clone(c.changes), func(c *change) bool { return before[c.path] != nil }))
		for _, c := range c.changes {
			before[c.path] = append(before[c.path], c.old)
		}
	}
	return of, before
}

// isUndone reports that at the path of a change is what was there before.
func isUndone(c *change, now entry, before map[string][]entry) bool {
	return now != c.new && slices.Contains(before[c.path], now)
}

// allOf reports that there are changes and that yes holds for all of them.
func allOf(changes []*change, yes func(*change) bool) bool {
	return len(changes) > 0 && !slices.ContainsFunc(changes, func(c *change) bool { return !yes(c) })
}

// settled tells when to look at the last commits again, and forgets those that nothing can undo any
// more; zero: there is none left.
func (l *Log) settled() (next time.Time) {
	l.mem.forgetOld()
	if len(l.mem.own) > 0 {
		return time.Now().Add(keepTime / 3)
	}
	return time.Time{}
}
