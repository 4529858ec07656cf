package gitlog

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"time"
)

// healTime after a commit nearly every git command that was under way during it has ended, but for one that waits in
// an editor, and such a one has locked the index before.
const healTime = time.Second

// heal looks whether the last commits still stand. `git commit`, `git stash pop` and others read the index before they
// lock it; one that read it before our moves and locked it after lockAfter has written an old index back. The next
// commit from that would take the new mail away, and one that was made at once has. Entries that are as before our
// commits follow the branch; files that are on disk as we committed them, but gone from the branch, are committed once
// more. Both are left alone where anything else was done to them (astray). The caller holds the turn.
func (l *Log) heal(ctx context.Context) error {
	repo, err := openRepository(l.cfg.Dir, l.mem)
	if err != nil {
		return nil // the commit that follows says why
	}
	defer repo.close()
	if err := l.restoreCommits(repo); err != nil {
		return err
	}
	for range 3 {
		if err = l.level(ctx, repo); !errors.Is(err, errMoved) {
			break
		}
	}
	return err
}

// level makes index and branch have our last commits. errMoved: somebody has written the index meanwhile.
func (l *Log) level(ctx context.Context, repo *repository) error {
	mem := l.mem
	if err := l.repair(repo); err != nil || repo.busy() != nil {
		return err
	}
	at, err := l.branch(repo)
	if transient(err) {
		return err
	}
	if err != nil {
		return nil
	}
	if !mem.recalled {
		if mem.own, err = repo.history(at.commit); err != nil {
			return err
		}
		mem.recalled = true
	}
	now, err := repo.seeIndex()
	if err != nil && len(mem.own) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if len(mem.own) > 0 && now.exists && !mem.level.sameState(state{now, at.commit}) {
		return l.mend(ctx, repo, at)
	}
	mem.level = state{now, at.commit}
	mem.forget(time.Now())
	return nil
}

// mend is level where somebody else has written the index or moved the branch.
func (l *Log) mend(ctx context.Context, repo *repository, at head) error {
	mem := l.mem
	found, err := repo.astray(at, mem.own)
	if err != nil {
		return err
	}
	mem.level = state{found.seen, at.commit}
	if len(found.behind) > 0 {
		mem.level = state{}
		m := &mark{PID: os.Getpid(), Branch: at.branch, Old: at.commit.String(), New: at.commit.String()}
		if err := repo.follow(m, found.behind); err != nil {
			return err
		}
		if err := repo.unstage(); err != nil {
			return err
		}
		l.cfg.Log.Info("git index brought level with the branch", "files", len(found.behind))
		now, err := repo.seeIndex()
		if err != nil {
			return err
		}
		if n := len(m.Index); n > 0 && m.Index[n-1] == hex.EncodeToString(now.sum[:]) {
			mem.index, mem.level = now, state{now, at.commit}
		}
	}
	if len(found.lost) > 0 {
		l.cfg.Log.Info("mail that a commit made by hand had dropped is committed again", "files", len(found.lost))
		if err := l.commit(ctx, batch{edits: found.lost, force: true, again: true}); err != nil {
			mem.level = state{}
			return err
		}
	}
	mem.forget(time.Now())
	return nil
}

// restoreCommits makes sure of the objects of the last commits.
func (l *Log) restoreCommits(repo *repository) error {
	n, names, err := repo.restoreObjects(l.mem.fresh)
	if err != nil || n == 0 {
		return err
	}
	l.cfg.Log.Info("objects that git prune had removed are written again", "objects", n)
	l.grow(n)
	return syncAll(repo.git, names)
}

// settled tells when to look at the last commits again; zero: nothing can take them away any more, and what is kept
// for that is forgotten. While a git gc runs, which may have begun before the commit, or it cannot be told, their objects
// are kept.
func (l *Log) settled() (next time.Time) {
	repo, err := openRepository(l.cfg.Dir, l.mem)
	if transient(err) || err == nil && repo.collecting() {
		return time.Now().Add(healTime)
	}
	l.mem.fresh = nil
	if err != nil {
		l.mem.own = nil
	}
	if len(l.mem.own) > 0 {
		return time.Now().Add(keepTime / 3)
	}
	return time.Time{}
}
