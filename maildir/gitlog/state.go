package gitlog

import (
	"context"
	"errors"

	"mailtree/maildir/history"
	"mailtree/maildir/refusal"
)

// State implements history.Log. It checks the repository itself, so that it reports an unfinished merge even if no
// operation is waiting yet.
func (l *Log) State() history.State {
	l.mu.Lock()
	s := history.State{Mode: "committing", Pending: l.pending(), LastCommit: l.last, Import: l.imported()}
	trouble := l.trouble
	l.mu.Unlock()
	if h := l.standing(); h != nil {
		trouble = h
	} else if s.Pending == 0 {
		trouble = nil
	}
	if trouble != nil {
		s.Mode, s.Reason = modeOf(trouble)
	}
	return s
}

// standing returns an error if the repository does not currently accept commits.
func (l *Log) standing() error {
	repo, err := l.openRepository(context.Background(), newMemory()) // not l.mem, which is guarded by l.turn
	if err != nil {
		return err
	}
	if _, err := l.git(); err != nil && !l.embedded {
		return err
	}
	if err := repo.busy(); err != nil {
		return err
	}
	recorded, err := repo.recorded()
	if err != nil {
		return err
	}
	at, err := repo.onBranch(recorded)
	if err != nil {
		return err
	}
	if _, err := repo.seeIndex(); err != nil {
		return err
	}
	return repo.staleLocks(at)
}

// modeOf returns the Mode and Reason of a history.State for the given error.
func modeOf(err error) (mode, reason string) {
	if h := holdOf(err); h != nil {
		return h.mode, h.reason
	}
	return "waiting", "The last commit failed (" + oneLine(err.Error(), 200) + "). The mail is safe, " +
		"and the server will retry."
}

// unavailable converts an error to a refusal that wraps refusal.ErrUnavailable.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	e := &refusal.Error{What: refusal.Unavailable("The history could not be read or written; see the server's log, then " +
		"try again."), Err: err}
	var known *refusal.Error
	held := holdOf(err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e.What = refusal.Unavailable("The history was busy for too long; try again.")
	case errors.As(err, &known):
		return known
	case held != nil && held.reason != "":
		e.What, e.Why = refusal.Unavailable("{why}"), held.reason
	}
	return e
}
