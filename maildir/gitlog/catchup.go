package gitlog

import (
	"context"
	"errors"
	"slices"
	"time"

	"mailtree/maildir/tree"
)

// catchUp hands over, once, what others changed while nobody watched: git status tells it, when the
// operations that the journal has recovered are committed and the repository is in a state to commit
// to. done is false where ctx has ended it.
func (l *Log) catchUp(ctx context.Context, before uint64) (done bool) {
	var last []string
	for failures := 0; ; {
		found, more, err := l.missed(ctx, before)
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil:
			if l.found(ctx, found) != nil {
				return false
			}
			if !more || slices.Equal(found, last) { // of the same again there is nothing to commit
				return true
			}
			last, failures = found, 0
		case failures == 0 && !errors.Is(err, errLater):
			_, reason := modeOf(err)
			l.cfg.Log.Info("edits made while the server was not running are looked for later", "reason", reason)
		}
		if pause(ctx, min(shortestRetry<<min(failures, 10), longestRetry)) != nil {
			return false
		}
		failures++
	}
}

// lastLook goes on with catchUp when the server ends, at once: nobody records operations any more.
// What it cannot do is for the next start.
func (l *Log) lastLook(ctx context.Context, before uint64) error {
	found, _, err := l.missed(ctx, before)
	if err != nil {
		return nil
	}
	l.Edited(found)
	return l.Flush(ctx)
}

// errLater: what was recorded or found before is still to be committed.
var errLater = errors.New("there is still work in the queue")

// found is Edited, but it leaves an operation that has just written one of the paths the time to be
// recorded, and the quiet time begins anew, however long other edits have been waiting.
func (l *Log) found(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	if err := pause(ctx, l.recordTime); err != nil {
		return err
	}
	l.mu.Lock()
	now := time.Now()
	l.edited(paths, now)
	l.firstEdit = now
	l.mu.Unlock()
	l.ring()
	l.cfg.Log.Info("changes that no commit has were found and are committed", "paths", len(paths))
	return nil
}

// recordTime is more than an operation takes from its first file to Record.
const recordTime = 2 * time.Second

// mostFound bounds what is handed over at once: the rest follows when that is committed.
const mostFound = 50000

// missed compares the tree with the index; more says that there are more than mostFound differences.
func (l *Log) missed(ctx context.Context, before uint64) (found []string, more bool, err error) {
	l.mu.Lock()
	later := l.finished < before || len(l.edits)+len(l.flight) >= mostFound
	l.mu.Unlock()
	if later {
		return nil, false, errLater
	}
	done, err := await(ctx, l.cfg.Share.aside)
	if err != nil {
		return nil, false, err
	}
	defer done()
	err = l.exclusive(ctx, func() error {
		repo, _, err := l.openReady(ctx)
		if err == nil {
			repo.Close()
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	repo, err := l.openRepository(ctx, newMemory())
	if err != nil {
		return nil, false, err
	}
	defer repo.Close()
	found, err = repo.differences()
	if errors.Is(err, errFull) {
		return found, true, nil
	}
	return found, false, err
}

var errFull = errors.New("enough for one commit")

// differences are the paths at which the tree is not as the index says, and the files that are not in it
// and not ignored: those below folders, where any are named. Nested repositories are not entered. Errors:
// errFull after mostFound of them.
func (r *repository) differences(folders ...string) (found []string, err error) {
	if err := r.copyExclude(); err != nil {
		return nil, err
	}
	w, err := tree.Open(r.dir, 0)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	args := []string{"status", "--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules", "--"}
	if slices.Contains(folders, "") {
		folders = nil
	}
	err = r.stream(nil, func(record []byte) error {
		path := changedPath(record)
		if path == "" || !committable(path) {
			return nil
		}
		if record[0] == '?' {
			if st, err := w.Stat(path); err == nil && !isKept(path, st) {
				return nil
			}
		}
		if found = append(found, path); len(found) == mostFound {
			return errFull
		}
		return nil
	}, append(args, folders...)...)
	return found, err
}

// changedPath is the path of a line of git status, "XY PATH", where the work tree differs from the index; "" where it
// does not, or where a nested repository lies.
func changedPath(record []byte) string {
	if len(record) < 4 || record[1] == ' ' || record[len(record)-1] == '/' {
		return ""
	}
	return string(record[3:])
}
