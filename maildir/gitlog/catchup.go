package gitlog

import (
	"context"
	"errors"
	"maps"
	"slices"

	"mailtree/maildir/tree"
)

// catchUp hands over, once, what others changed while nobody watched: git status tells it, when the
// operations that the journal has recovered are committed and the repository is in a state to commit
// to. done is false where ctx has ended it.
func (l *Log) catchUp(ctx context.Context, before uint64) (done bool) {
	for failures := 0; ; failures++ {
		found, err := l.missed(ctx, before)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			if len(found) > 0 {
				l.cfg.Log.Info("changes that no commit has were found and are committed", "paths", len(found))
			}
			l.Edited(found)
			return true
		case failures == 0 && !errors.Is(err, errLater):
			_, reason := modeOf(err)
			l.cfg.Log.Info("edits made while the server was not running are looked for later", "reason", reason)
		}
		if pause(ctx, min(shortestRetry<<min(failures, 10), longestRetry)) != nil {
			return false
		}
	}
}

// errLater: what was recorded before is still to be committed.
var errLater = errors.New("there is still work in the queue")

// missed compares the tree with the index.
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

// mostNamed is how many paths git status is asked for by name: it compares each file with each of them.
const mostNamed = 100

// differences are the paths at which the tree is not as the index says, and the files that are not in it
// and not ignored: those at or below the named ones, where there are any. A named file that is as
// the index says is told too, as somebody may have staged it. Nested repositories are not entered.
func (r *repository) differences(names ...string) (found []string, err error) {
	if err := r.copyExclude(); err != nil {
		return nil, err
	}
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
	args := []string{"status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules", "--"}
	if !wanted[""] && len(wanted) <= mostNamed {
		args = slices.AppendSeq(args, maps.Keys(wanted))
	}
	err = r.stream(nil, func(record []byte) error { // "XY PATH"; X means nothing, as our commands see no commit
		if len(record) < 4 || record[len(record)-1] == '/' { // of a nested repository
			return nil
		}
		path, staged := string(record[3:]), record[1] == ' '
		if !committable(path) || !isWithin(path, wanted) || staged && !wanted[path] {
			return nil
		}
		st, err := w.Stat(path)
		delete(missing, path)
		if staged && isGone(err) || record[0] == '?' && err == nil && !isKept(path, st) { // gone by a sparse checkout
			return nil
		}
		found = append(found, path)
		return nil
	}, args...)
	return slices.AppendSeq(found, maps.Keys(missing)), err
}

// isWithin reports whether a path or a folder above it is wanted.
func isWithin(path string, wanted map[string]bool) bool {
	for ; path != "" && !wanted[path]; path, _ = splitPath(path) {
	}
	return wanted[path]
}
