package gitlog

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/history"
)

// lookDone is the number of newest commits that LastDone and NamedDone read.
const lookDone = 3000

// LastDone implements history.Log.
func (l *Log) LastDone(ctx context.Context, q history.DoneQuery) (all []history.Done, err error) {
	type key struct{ verb, id string }
	taken := map[key]int{} // operations, or with q.Undone undoings, that are taken back further up
	err = l.eachDone(ctx, func(repo *repository, c *commit, ops []history.RecordedOp) error {
		if c.author != l.agent(q.Agent) {
			return nil
		}
		for _, op := range slices.Backward(ops) {
			verb, undoes := strings.CutPrefix(op.Verb, history.UndoPrefix)
			verb, redoes := strings.CutPrefix(verb, history.RedoPrefix)
			of := key{verb, op.ID}
			switch {
			case undoes && !q.Undone, redoes && q.Undone:
				taken[of]++
				continue
			case undoes == q.Undone && taken[of] > 0:
				taken[of]--
				continue
			}
			if undoes != q.Undone || q.ID != "" && op.ID != q.ID || !q.Wants(verb) {
				continue
			}
			done := history.Done{Verb: verb, ID: op.ID, At: c.made, Summary: op.Summary, Commit: c.name.String()}
			others := slices.DeleteFunc(slices.Clone(ops), func(o history.RecordedOp) bool { return !onClaims(o) })
			if shared := onClaims(op) && len(others) > 1; len(all) == 0 && !shared { // else the files may belong to the others
				if done.Changes, err = repo.changesBy(c, op); err != nil {
					return err
				}
			}
			if all = append(all, done); len(all) == q.Most {
				return errFound
			}
		}
		return nil
	})
	return all, err
}

// NamedDone implements history.Log.
func (l *Log) NamedDone(ctx context.Context, prefixes []string) (ids []string, err error) {
	err = l.eachDone(ctx, func(_ *repository, _ *commit, ops []history.RecordedOp) error {
		for _, op := range ops {
			begins := func(prefix string) bool { return strings.HasPrefix(op.ID, prefix) }
			if slices.ContainsFunc(prefixes, begins) && !slices.Contains(ids, op.ID) {
				ids = append(ids, op.ID)
			}
		}
		return nil
	})
	return ids, err
}

// eachDone calls f with each of the newest lookDone commits and its operations, until f returns an error.
func (l *Log) eachDone(ctx context.Context, f func(*repository, *commit, []history.RecordedOp) error) error {
	repo := l.newRepository(ctx, newMemory())
	defer repo.Close()
	tip, err := l.tip(ctx, repo)
	if err != nil {
		return err
	}
	return repo.eachCommit(tip, func(c *commit) error { return f(repo, c, recordedOps(c.message)) },
		"-n", strconv.Itoa(lookDone))
}

// tip commits the operations that wait, then returns HEAD: a caller that has just done an operation
// expects to find it. If the error wraps refusal.ErrUnavailable, the hash is HEAD without the waiting
// operations.
func (l *Log) tip(ctx context.Context, repo *repository) (hash, error) {
	waits := l.commitWaiting(ctx)
	at, err := repo.head()
	if err == nil {
		err = unavailable(waits)
	}
	return at.commit, err
}

// readPatience is how long a reader of the history waits until the waiting operations are committed.
const readPatience = 5 * time.Second

// commitWaiting commits the waiting operations if that is possible now.
func (l *Log) commitWaiting(ctx context.Context) error {
	if !l.pendingOps() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	err := l.exclusive(ctx, func() error { return l.commitRecorded(ctx) })
	if err != nil {
		l.cfg.Log.Debug("the history is read without what waits", "error", err)
	}
	return err
}

// onClaims reports whether an operation may have written claims: it names no message, or it released
// claims together with a message.
func onClaims(op history.RecordedOp) bool {
	verb := strings.TrimPrefix(strings.TrimPrefix(op.Verb, history.UndoPrefix), history.RedoPrefix)
	return op.ID == "" || verb == history.VerbRelease
}

// changesBy returns the changes that an operation's commit made to the files of its message, or to claims.
// Other operations may share the commit.
func (r *repository) changesBy(c *commit, op history.RecordedOp) (changes []history.Version, err error) {
	all, err := r.changesOf(c.sides())
	if err != nil {
		return nil, err
	}
	read := func(e entry) (data []byte) {
		if e.Mode == 0 || err != nil {
			return nil
		}
		data, err = r.read("blob", e.Hash.String())
		return append([]byte{}, data...) // not nil for an empty file
	}
	for _, c := range all {
		at := format.Locate(c.path)
		claims := at.Kind == format.KindClaim || at.Kind == format.KindReleased
		if claims && onClaims(op) || op.ID != "" && at.ID == op.ID {
			changes = append(changes, history.Version{Path: c.path, Was: read(c.old), Is: read(c.new)})
		}
	}
	return changes, err
}
