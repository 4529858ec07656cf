package gitlog

import (
	"context"
	"errors"
	"maps"
	"slices"

	"mailtree/maildir/clock"
	"mailtree/maildir/tree"
)

// catchUp asks git status which files were changed while the server was not running, and records these changes as
// edits. Before that, it waits until the repository accepts commits, and until the operations recovered from the
// journal have been committed. These operations are in the first records of the queue, and the argument before is the
// number of these records. catchUp returns false if ctx ends first.
func (l *Log) catchUp(ctx context.Context, before uint64) (done bool) {
	for failures := 0; ; failures++ {
		found, err := l.missed(ctx, before)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			if len(found) > 0 {
				l.cfg.Log.Info("found uncommitted changes; committing them", "paths", len(found))
			}
			l.RecordEdits(found)
			return true
		case failures == 0 && !errors.Is(err, errLater):
			_, reason := modeOf(err)
			l.cfg.Log.Info("postponed the search for edits made while the server was stopped", "reason", reason)
		}
		if clock.Sleep(ctx, min(shortestRetry<<min(failures, 10), longestRetry)) != nil {
			return false
		}
	}
}

// errLater means that some earlier records have not been committed yet.
var errLater = errors.New("there is still work in the queue")

// missed returns the paths at which the tree differs from the index.
func (l *Log) missed(ctx context.Context, before uint64) ([]string, error) {
	if l.isBehind(before) {
		return nil, errLater
	}
	done, err := await(ctx, l.cfg.Share.aside)
	if err != nil {
		return nil, err
	}
	defer done()
	if err = l.exclusive(ctx, func() error { return l.heal(ctx) }); err != nil {
		return nil, err
	}
	repo, err := l.openRepository(ctx, newMemory())
	if err != nil {
		return nil, err
	}
	defer repo.Close()
	return repo.differences()
}

// mostNamed is the maximum number of paths that are passed to git status as arguments. Git status compares each file
// with each argument, so more arguments would make it slow.
const mostNamed = 100

// differences returns the paths at which the tree differs from the index, including untracked files that are not
// ignored. If names are given, it returns only paths at or below them. It then also returns each named file that is the
// same as in the index, because a user may have staged that file. It does not enter nested repositories.
func (r *repository) differences(names ...string) (found []string, err error) {
	w, err := tree.Open(r.dir, 0)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	wanted, missing := map[string]bool{}, map[string]bool{}
	for _, name := range names {
		if name = named(name); name == "" || committable(name) {
			wanted[name] = true
			if _, err := w.Stat(name); name != "" && isGone(err) {
				missing[name] = true
			}
		}
	}
	switch {
	case len(names) == 0:
		wanted[""] = true
	case len(wanted) == 0:
		return nil, nil
	}
	err = r.status(w, wanted, func(path string, staged, untracked bool) {
		if !committable(path) || !isWithin(path, wanted) || staged && !wanted[path] {
			return
		}
		st, err := w.Stat(path)
		delete(missing, path)
		// Skip staged files that a sparse checkout removed, and new files of kinds that are not committed.
		if staged && isGone(err) || untracked && err == nil && !isKept(path, st) {
			return
		}
		found = append(found, path)
	})
	return slices.AppendSeq(found, maps.Keys(missing)), err
}

func (g *gitProgram) status(_ *tree.Tree, wanted map[string]bool, each func(path string, staged, untracked bool)) error {
	if err := g.copyExclude(); err != nil {
		return err
	}
	args := []string{"status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules", "--"}
	if !wanted[""] && len(wanted) <= mostNamed {
		args = slices.AppendSeq(args, maps.Keys(wanted))
	}
	return g.stream(func(record []byte) error { // the record is "XY PATH"; X is meaningless, because ownFolder has no commit
		if len(record) >= 4 && record[len(record)-1] != '/' { // a path that ends in "/" is a nested repository
			each(string(record[3:]), record[1] == ' ', record[0] == '?')
		}
		return nil
	}, args...)
}

// isWithin reports whether wanted contains the path or a folder above it.
func isWithin(path string, wanted map[string]bool) bool {
	for ; path != "" && !wanted[path]; path, _ = splitPath(path) {
	}
	return wanted[path]
}
