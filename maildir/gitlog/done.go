package gitlog

import (
	"bytes"
	"context"
	"strings"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/gitlog/object"
)

// lookDone is among how many of the newest commits LastDone looks.
const lookDone = 3000

// LastDone implements maildir.History. It follows first parents.
func (l *Log) LastDone(ctx context.Context, agent, id string, wants func(verb string) bool) (*maildir.Done, error) {
	repo := newRepository(l.cfg.Dir, newMemory())
	defer repo.Close()
	next, err := l.tip(ctx, repo)
	if err != nil {
		return nil, err
	}
	undone := map[told]int{}
	for looked := 0; !next.IsZero() && looked < lookDone; looked++ {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		data, err := repo.Read(object.KindCommit, next)
		if err != nil {
			return nil, err
		}
		head, message, _ := bytes.Cut(data, []byte("\n\n"))
		parent, author := commitHeader(string(head))
		if strings.HasPrefix(author, l.agent(agent)+" ") {
			ops := toldBy(string(message))
			for i := len(ops) - 1; i >= 0; i-- {
				op := ops[i]
				verb, undoes := strings.CutPrefix(op.verb, maildir.UndoPrefix)
				switch {
				case undoes:
					undone[told{verb, op.id}]++
				case undone[op] > 0:
					undone[op]--
				case (id == "" || op.id == id) && wants(op.verb):
					if op.onClaims() && !alone(ops) {
						return &maildir.Done{Verb: op.verb, ID: op.id, At: repo.When(next)}, nil
					}
					return repo.doneIn(next, parent, op)
				}
			}
		}
		next = parent
	}
	return nil, nil
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
func (op told) onClaims() bool { return op.id == "" || op.verb == maildir.VerbRelease }

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
func (r *repository) doneIn(commit, parent hash, op told) (*maildir.Done, error) {
	done := &maildir.Done{Verb: op.verb, ID: op.id, At: r.When(commit)}
	now, err := r.TreeOf(commit)
	if err != nil {
		return nil, err
	}
	before, err := r.TreeOf(parent)
	if err != nil {
		return nil, err
	}
	var failed error
	read := func(e entry) []byte {
		if !e.IsFile() || failed != nil {
			return nil
		}
		data, err := r.Read(object.KindBlob, e.Hash)
		failed = err
		return append([]byte{}, data...) // not nil where it is empty
	}
	whole := func(h hash) entry {
		if h.IsZero() {
			return entry{}
		}
		return entry{Mode: object.ModeTree, Hash: h}
	}
	err = r.Diff(whole(before), whole(now), "", func(path string, old, is entry) {
		at := format.Locate(path)
		claims := at.Kind == format.KindClaim || at.Kind == format.KindReleased
		if claims && op.onClaims() || op.id != "" && at.ID == op.id {
			done.Changes = append(done.Changes, maildir.Version{Path: path, Was: read(old), Is: read(is)})
		}
	})
	if err == nil {
		err = failed
	}
	return done, err
}
