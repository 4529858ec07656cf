package gitlog

import (
	"cmp"
	"context"
	"slices"
	"time"

	"mailtree/maildir/gitlog/gitindex"
	"mailtree/maildir/gitlog/object"
)

// tip is the commit that a reader of the history begins at: HEAD, or the newest of the operations that
// wait, because who has just done one looks for it. Their commits are drafted in memory, as a round
// would make them now: to make them takes a tenth of a second and more where 300,000 files are in the
// Git index, most of it for writing that file. Errors: of those that wrap refusal.ErrUnavailable the
// hash is HEAD all the same, and what waits is left out.
func (l *Log) tip(ctx context.Context, repo *repository) (hash, error) {
	waiting, at, err := l.waiting(repo)
	if err == nil && !waiting.isKnown() {
		commitErr := l.commitWaiting(ctx)
		if waiting, at, err = l.waiting(repo); err == nil && !waiting.isKnown() {
			return at.commit, unavailable(cmp.Or(commitErr, errLater))
		}
	}
	if err != nil || len(waiting.ops) == 0 {
		return at.commit, err
	}
	return l.draft(repo, at, waiting)
}

// waiting are the operations that wait, and HEAD, which has none of them.
func (l *Log) waiting(repo *repository) (b batch, at head, err error) {
	for {
		l.mu.Lock()
		records, finished, landing := slices.Clone(l.records), l.finished, l.landing
		l.mu.Unlock()
		if at, err = repo.head(); err != nil {
			return b, at, err
		}
		l.mu.Lock()
		same := l.finished == finished && l.landing == landing
		l.mu.Unlock()
		if !same {
			continue
		}
		if at.commit == landing.commit {
			records = records[landing.records:]
		}
		for _, r := range records {
			b.addRecord(r)
		}
		return b, at, nil
	}
}

// isKnown reports that the operations tell themselves what they wrote, and that they make one round.
func (b *batch) isKnown() bool {
	for _, op := range b.ops {
		for _, path := range op.Paths {
			if _, ok := op.Written[path]; !ok || op.Recovered {
				return false
			}
		}
	}
	return len(b.ops) <= maxOps
}

// draft makes the commits of operations in memory, where the repository finds them, and returns the
// newest.
func (l *Log) draft(repo *repository, at head, b batch) (hash, error) {
	tree, err := repo.TreeOf(at.commit)
	if err != nil {
		return hash{}, err
	}
	plan, err := newPlan(repo, tree, &gitindex.Index{})
	if err != nil {
		return hash{}, err
	}
	defer plan.close()
	plan.written = b.written
	for _, op := range b.ops {
		if err := plan.name(op.Paths); err != nil {
			return hash{}, err
		}
	}
	objects := object.Draft()
	if err := plan.load(objects, nil); err != nil {
		return hash{}, err
	}
	newest, _, err := l.write(&publication{repo: repo, at: at, plan: plan}, b, objects)
	if err != nil || newest.IsZero() {
		return at.commit, err
	}
	repo.Hold(objects)
	return newest, nil
}

// readPatience is how long a reader of the history waits for operations that are not committed yet.
const readPatience = time.Second

// commitWaiting commits operations that wait, as far as that is possible now.
func (l *Log) commitWaiting(ctx context.Context) error {
	if !l.pendingOps() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	err := l.exclusive(ctx, func() error { return l.commitOps(ctx) })
	if err != nil {
		l.cfg.Log.Debug("the history is read without what waits", "error", err)
	}
	return err
}
