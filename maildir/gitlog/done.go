package gitlog

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/history"
)

// lookDone is among how many of the newest commits LastDone and NamedDone look.
const lookDone = 3000

// LastDone implements history.Log.
func (l *Log) LastDone(ctx context.Context, agent, id string, wants func(verb string) bool) (*history.Done, error) {
	var done *history.Done
	undone := map[told]int{}
	err := l.eachDone(ctx, func(repo *repository, c *commit, ops []told) (err error) {
		if c.author != l.agent(agent) {
			return nil
		}
		for _, op := range slices.Backward(ops) {
			verb, undoes := strings.CutPrefix(op.verb, history.UndoPrefix)
			switch {
			case undoes:
				undone[told{verb, op.id}]++
			case undone[op] > 0:
				undone[op]--
			case (id == "" || op.id == id) && wants(op.verb):
				if op.onClaims() && !alone(ops) {
					done = &history.Done{Verb: op.verb, ID: op.id, At: c.made}
				} else if done, err = repo.doneIn(c, op); err != nil {
					return err
				}
				return errFound
			}
		}
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return done, err
}

// NamedDone implements history.Log.
func (l *Log) NamedDone(ctx context.Context, prefixes []string) (ids []string, err error) {
	err = l.eachDone(ctx, func(_ *repository, _ *commit, ops []told) error {
		for _, op := range ops {
			begins := func(prefix string) bool { return strings.HasPrefix(op.id, prefix) }
			if slices.ContainsFunc(prefixes, begins) && !slices.Contains(ids, op.id) {
				ids = append(ids, op.id)
			}
		}
		return nil
	})
	return ids, err
}

// eachDone calls f for the newest commits, with the operations that each tells of, until it returns an
// error. It follows first parents.
func (l *Log) eachDone(ctx context.Context, f func(*repository, *commit, []told) error) error {
	repo := l.newRepository(ctx, newMemory())
	defer repo.Close()
	tip, err := l.tip(ctx, repo)
	if err != nil {
		return err
	}
	return repo.eachCommit(ctx, tip.String(), func(c *commit) error { return f(repo, c, toldBy(c.message)) },
		"--first-parent", "-n", strconv.Itoa(lookDone))
}

// tip is HEAD after the operations that wait were committed, because who has just done one looks for
// it. Errors: of those that wrap refusal.ErrUnavailable the hash is HEAD all the same, without what
// waits.
func (l *Log) tip(ctx context.Context, repo *repository) (hash, error) {
	waits := l.commitWaiting(ctx)
	at, err := repo.head()
	if err == nil {
		err = unavailable(waits)
	}
	return at.commit, err
}

// readPatience is how long a reader of the history waits for operations that are not committed yet.
const readPatience = 5 * time.Second

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

// alone reports whether one of the operations of a commit may be on claims: the files that belong to
// no message are its.
func alone(ops []told) bool {
	n := 0
	for _, op := range ops {
		if op.onClaims() {
			n++
		}
	}
	return n == 1
}

// told is one operation in the trailers of a commit.
type told struct{ verb, id string }

// onClaims reports whether the operation may have written claims: it is on no message, or tells of the
// release in one.
func (op told) onClaims() bool { return op.id == "" || op.verb == history.VerbRelease }

// toldBy reads the trailers of a commit, in their order.
func toldBy(message string) (ops []told) {
	trailers := message[strings.LastIndex(strings.TrimRight(message, "\n"), "\n\n")+1:]
	for line := range strings.Lines(trailers) {
		line = strings.TrimSpace(line)
		if verb, ok := strings.CutPrefix(line, "Mail-Op: "); ok {
			ops = append(ops, told{verb: verb})
		}
		if id, ok := strings.CutPrefix(line, "Mail-Id: "); ok && len(ops) > 0 {
			ops[len(ops)-1].id = id
		}
	}
	return ops
}

// doneIn returns an operation with what its commit made of the files of its message, or of claims:
// others may share the commit.
func (r *repository) doneIn(c *commit, op told) (*history.Done, error) {
	done := &history.Done{Verb: op.verb, ID: op.id, At: c.made}
	changes, err := r.changesOf(c.sides())
	if err != nil {
		return nil, err
	}
	read := func(e entry) (data []byte) {
		if e.Mode == 0 || err != nil {
			return nil
		}
		data, err = r.read("blob", e.Hash.String())
		return append([]byte{}, data...) // not nil where it is empty
	}
	for _, c := range changes {
		at := format.Locate(c.path)
		claims := at.Kind == format.KindClaim || at.Kind == format.KindReleased
		if claims && op.onClaims() || op.id != "" && at.ID == op.id {
			done.Changes = append(done.Changes, history.Version{Path: c.path, Was: read(c.old), Is: read(c.new)})
		}
	}
	return done, err
}
