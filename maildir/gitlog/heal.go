package gitlog

import (
	"context"
	"os"
	"time"
)

// healTime after a commit every git command that was under way during it has ended, but for one that waits in an
// editor, and such a one has locked the index before.
const healTime = time.Second

// heal looks whether the last commit still stands. `git commit` reads the index before it locks it; one that read
// it before our move and locked it after lockAfter has written the old index back. Its own commit failed, but the
// next one would take the new mail away, and one that was made at once has. Entries that are as before our commit
// follow the branch; files that are on disk as we committed them, but gone from branch and index, are committed
// once more. Both are left alone where anything else was done to them. The caller holds the turn.
func (l *Log) heal(ctx context.Context) error {
	last := l.mem.last
	if len(last) == 0 {
		return nil
	}
	repo, err := openRepository(l.cfg.Dir, l.mem)
	if err != nil {
		return nil // the commit that follows says why
	}
	defer repo.close()
	if now, err := repo.seeIndex(); err != nil || !now.exists || now.same(l.mem.index) || repo.busy() != nil {
		return err
	}
	at, err := l.branch(repo)
	if err != nil {
		return nil
	}
	behind, lost, err := repo.astray(at, last)
	if err != nil {
		return err
	}
	if len(behind) > 0 {
		m := &mark{PID: os.Getpid(), Branch: at.branch, Old: at.commit.String(), New: at.commit.String()}
		if err := repo.follow(m, behind); err != nil {
			return err
		}
		if err := repo.unstage(); err != nil {
			return err
		}
		l.cfg.Log.Info("git index brought level with the branch", "files", len(behind))
	}
	if l.mem.index, err = repo.seeIndex(); err != nil {
		return err
	}
	l.mem.last = nil
	if len(lost) == 0 {
		return nil
	}
	l.cfg.Log.Info("mail that a commit made by hand had dropped is committed again", "files", len(lost))
	if _, err := l.commit(ctx, batch{edits: lost, force: true, again: true}); err != nil {
		l.mem.last = last
		return err
	}
	return nil
}

// astray sorts out which changes of our last commit the index lacks (behind), and which the branch lacks too (lost).
// An index that has any of them is no old one: then somebody has unstaged the others on purpose.
func (r *repository) astray(at head, last []*change) (behind []*change, lost []string, err error) {
	tree, err := r.treeOf(at.commit)
	if err != nil {
		return nil, nil, err
	}
	index, err := r.readIndex()
	if err != nil {
		return nil, nil, err
	}
	now, err := newPlan(r, tree, index)
	if err != nil {
		return nil, nil, err
	}
	defer now.close()
	for _, c := range last {
		now.add(c.path, false)
	}
	if err := now.load(&objects{dry: true}, nil); err != nil {
		return nil, nil, err
	}
	for _, c := range last {
		e, ok := index.at(c.path)
		if ok && e.entry() != c.old || !ok && c.old.mode != 0 {
			return nil, nil, nil
		}
		switch n := now.changes[c.path]; {
		case n.new != c.new: // changed on disk
		case n.old == c.new:
			behind = append(behind, &change{path: c.path, old: c.old, new: c.new, stat: fileStat{uncertain: true}})
		case n.old == c.old:
			lost = append(lost, c.path)
		}
	}
	return behind, lost, nil
}
