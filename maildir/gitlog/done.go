package gitlog

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/history"
)

// lookDone is the number of newest commits that LastDone and NamedDone read.
const lookDone = 3000

// LastDone implements history.Log.
func (l *Log) LastDone(ctx context.Context, q history.DoneQuery) ([]history.Done, error) {
	s := &doneSearch{DoneQuery: q, taken: map[deed]int{}}
	err := l.eachDone(ctx, func(repo *repository, c *commit, ops []history.RecordedOp) error {
		if c.author != l.agent(q.Agent) {
			return nil
		}
		for _, op := range slices.Backward(ops) {
			if err := s.look(&op); err != nil {
				return err
			}
			if err := s.take(repo, c, &op, ops); err != nil {
				return err
			}
		}
		return nil
	})
	return s.all, err
}

// deed is the key for matching an undo with the operation that it undoes.
type deed struct{ verb, id string }

// doneSearch is the state of a LastDone call, which examines the agent's operations, newest first.
type doneSearch struct {
	history.DoneQuery
	taken map[deed]int // number of newer undos (or redos, if Undone is set) whose operations have not been found yet
	all   []history.Done
	steps int            // total number of steps
	along []history.Done // operations of a step; added to all only if an older operation of the step is wanted

	found bool // set by look: whether the operation is selected
	verb  string
}

// look determines whether an operation is selected, and sets found and verb accordingly. It returns fs.SkipAll if no
// older operation can be selected.
func (s *doneSearch) look(op *history.RecordedOp) error {
	verb, undoes := strings.CutPrefix(op.Verb, history.UndoPrefix)
	verb, redoes := strings.CutPrefix(verb, history.RedoPrefix)
	s.found, s.verb = false, verb
	of, named := deed{verb, op.ID}, s.ID == "" || op.ID == s.ID
	switch {
	case undoes && !s.Undone, redoes && s.Undone:
		s.taken[of]++
	case s.Undone && !undoes && named && s.Wants(verb): // undos older than this operation can no longer be redone
		return fs.SkipAll
	case undoes == s.Undone && s.taken[of] > 0:
		s.taken[of]--
	default:
		s.found = undoes == s.Undone && named
	}
	return nil
}

// take adds an operation to the result if look has selected it, and if it is wanted or belongs to the same step as a
// wanted operation. It returns fs.SkipAll if the result has the requested number of steps.
func (s *doneSearch) take(repo *repository, c *commit, op *history.RecordedOp, ops []history.RecordedOp) error {
	part := s.ID == "" && op.Step != ""
	last := len(s.all) - 1
	same := part && last >= 0 && s.all[last].Step == op.Step
	if len(s.along) > 0 && s.along[0].Step != op.Step {
		s.along = nil
	}
	wanted, along := s.found && s.Wants(s.verb), s.found && part && s.Along != nil && s.Along(s.verb)
	if !wanted && !along {
		return nil
	}
	if !same && s.steps == s.Most {
		return fs.SkipAll
	}
	done, err := s.describe(repo, c, op, ops, s.steps == 0 || same && s.steps == 1)
	switch {
	case err != nil:
	case !wanted && !same:
		s.along = append(s.along, done)
	default:
		s.all, s.along = append(append(s.all, s.along...), done), nil
		if !same {
			s.steps++
		}
		if !part && s.steps == s.Most {
			err = fs.SkipAll
		}
	}
	return err
}

// describe returns an operation as a Done. If changes is set, the result includes the operation's changes, unless they
// are unknown.
func (s *doneSearch) describe(
	repo *repository, c *commit, op *history.RecordedOp, ops []history.RecordedOp, changes bool,
) (done history.Done, err error) {
	done = history.Done{Verb: s.verb, ID: op.ID, At: c.made, Step: op.Step, Summary: op.Summary, Commit: c.name.String()}
	kinds := beside(*op)
	others := slices.DeleteFunc(slices.Clone(ops), func(o history.RecordedOp) bool { return !overlap(kinds, beside(o)) })
	if changes && len(others) <= 1 { // if there are several such operations, any of them may have written the files
		done.Changes, err = repo.changesBy(c, *op)
	}
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

// eachDone calls f for each of the newest lookDone commits, with the operations in that commit, until f returns an
// error.
func (l *Log) eachDone(ctx context.Context, f func(*repository, *commit, []history.RecordedOp) error) error {
	repo := l.newRepository(ctx, newMemory())
	defer repo.Close()
	tip, err := l.tip(ctx, repo)
	if err != nil {
		return err
	}
	return repo.eachCommit(tip, commits{most: lookDone}, func(c *commit) error { return f(repo, c, recordedOps(c.message)) })
}

// tip commits the waiting operations and then returns HEAD. A caller that has just performed an operation expects to
// find it in the history. If the error wraps refusal.ErrUnavailable, HEAD does not include the waiting operations.
func (l *Log) tip(ctx context.Context, repo *repository) (hash, error) {
	waits := l.commitWaiting(ctx)
	at, err := repo.head()
	if err == nil {
		err = unavailable(waits)
	}
	return at.commit, err
}

// readPatience is how long reading the history waits for waiting operations to be committed.
const readPatience = 5 * time.Second

// commitWaiting commits the waiting operations, if that is possible now.
func (l *Log) commitWaiting(ctx context.Context) error {
	if !l.pendingOps() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	err := l.exclusive(ctx, func() error { return l.commitRecorded(ctx) })
	if err != nil {
		l.cfg.Log.Debug("cannot commit the pending operations; reading the history without them", "error", err)
	}
	return err
}

// beside returns the kinds of files that an operation may have written in addition to the files of its message.
func beside(op history.RecordedOp) []format.Kind {
	verb := strings.TrimPrefix(strings.TrimPrefix(op.Verb, history.UndoPrefix), history.RedoPrefix)
	switch verb {
	case history.VerbRegister, history.VerbPresence:
		return nil
	case history.VerbHold, history.VerbGo:
		return besideMail[:1]
	case history.VerbClaim, history.VerbRenew, history.VerbRelease:
		return besideMail[1:]
	}
	if op.ID != "" {
		return nil
	}
	return besideMail
}

// overlap reports whether a and b have a kind in common.
func overlap(a, b []format.Kind) bool {
	return slices.ContainsFunc(a, func(k format.Kind) bool { return slices.Contains(b, k) })
}

// besideMail lists the kinds of files that operations write but that do not belong to a message.
var besideMail = []format.Kind{format.KindHold, format.KindClaim, format.KindReleased}

// changesBy returns the changes that an operation's commit makes to claims, to holds and to the files of the
// operation's message. The commit may also contain other operations.
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
		return append([]byte{}, data...) // the result for an empty file must not be nil
	}
	for _, c := range all {
		at := format.Locate(c.path)
		if slices.Contains(beside(op), at.Kind) || op.ID != "" && at.ID == op.ID {
			changes = append(changes, history.Version{Path: c.path, Was: read(c.old), Is: read(c.new)})
		}
	}
	return changes, err
}
