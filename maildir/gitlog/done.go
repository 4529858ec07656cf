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
func (l *Log) LastDone(ctx context.Context, agent, id string, wants func(verb string) bool) (*history.Done, error) {
	var done *history.Done
	type key struct{ verb, id string }
	undone := map[key]int{}
	err := l.eachDone(ctx, func(repo *repository, c *commit, ops []history.RecordedOp) (err error) {
		if c.author != l.agent(agent) {
			return nil
		}
		for _, op := range slices.Backward(ops) {
			verb, undoes := strings.CutPrefix(op.Verb, history.UndoPrefix)
			switch {
			case undoes:
				undone[key{verb, op.ID}]++
			case undone[key{verb, op.ID}] > 0:
				undone[key{verb, op.ID}]--
			case (id == "" || op.ID == id) && wants(op.Verb):
				others := slices.DeleteFunc(slices.Clone(ops), func(o history.RecordedOp) bool { return !onClaims(o) })
				if onClaims(op) && len(others) > 1 { // the files outside its message may belong to the other operations
					done = &history.Done{Verb: op.Verb, ID: op.ID, At: c.made}
				} else if done, err = repo.doneIn(c, op); err != nil {
					return err
				}
				return errFound
			}
		}
		return nil
	})
	return done, err
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
// It follows first parents.
func (l *Log) eachDone(ctx context.Context, f func(*repository, *commit, []history.RecordedOp) error) error {
	repo := l.newRepository(ctx, newMemory())
	defer repo.Close()
	tip, err := l.tip(ctx, repo)
	if err != nil {
		return err
	}
	return repo.eachCommit(tip, func(c *commit) error { return f(repo, c, recordedOps(c.message)) },
		"--first-parent", "-n", strconv.Itoa(lookDone))
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
func onClaims(op history.RecordedOp) bool { return op.ID == "" || op.Verb == history.VerbRelease }

// doneIn returns an operation with the changes that its commit made to the files of its message, or to
// claims. Other operations may share the commit.
func (r *repository) doneIn(c *commit, op history.RecordedOp) (*history.Done, error) {
	done := &history.Done{Verb: op.Verb, ID: op.ID, At: c.made}
	changes, err := r.changesOf(c.sides())
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
	for _, c := range changes {
		at := format.Locate(c.path)
		claims := at.Kind == format.KindClaim || at.Kind == format.KindReleased
		if claims && onClaims(op) || op.ID != "" && at.ID == op.ID {
			done.Changes = append(done.Changes, history.Version{Path: c.path, Was: read(c.old), Is: read(c.new)})
		}
	}
	return done, err
}
