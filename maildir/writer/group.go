package writer

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// MaxGroup is the most operations of one group.
const MaxGroup = 256

// maxTries is how often one operation is planned that found the tree ahead of the index.
const maxTries = 8

// Group is one group commit.
type Group struct {
	Ctx    context.Context // for what a plan asks of others; it does not end with a caller
	Now    time.Time       // when the present plan began, in UTC
	Number uint64          // no other group of this tree has had it

	w      *Writer
	c      *tree.Changer
	txs    []*Tx
	staged int
	unsure bool // something could not be taken back: the journal keeps the group for the next start
}

// newGroup waits until there are not too many groups under way in the store; the caller calls close
// or end.
func (w *Writer) newGroup(ctx context.Context) *Group {
	w.Limits.groups <- struct{}{}
	return &Group{Ctx: ctx, Number: w.number.Add(1), w: w, c: w.Tree.Changer(w.Limits.Folders)}
}

// close gives up what the group holds of the system.
func (g *Group) close() {
	g.c.Close()
	<-g.w.Limits.groups
}

// plan decides what an operation writes and stages it. What must wait for an operation under way is
// planned when a group has ended.
func (g *Group) plan(tx *Tx) {
	w := g.w
	switch {
	case tx.ctx != nil && context.Cause(tx.ctx) != nil:
		tx.err = context.Cause(tx.ctx)
		tx.answer()
		return
	case w.flight.factsHeld(tx):
		w.later(tx)
		return
	}
	g.Now = w.Now().UTC()
	tx.At, tx.Writes, tx.Paths, tx.planned = g.Now, nil, nil, nil
	tx.unsaved = map[string]string{}
	err := tx.Plan(g)
	tx.Door = doorOf(tx.ctx)
	switch {
	case errors.Is(err, ErrBusy):
		w.later(tx)
		return
	case errors.Is(err, ErrStale):
		g.retry(tx)
		return
	case err != nil || len(tx.Writes) == 0:
		tx.err = err
		tx.answer()
		return
	case len(tx.unsaved) > 0:
		w.save(g.Ctx, tx)
		return
	case !w.flight.reserve(tx):
		w.later(tx)
		return
	}
	if tx.err = g.stage(tx); tx.err != nil {
		g.retire(tx)
		w.failing.tell(tx.err)
		w.Look() // what was reported of its paths may be ingested now
		tx.answer()
		return
	}
	g.txs = append(g.txs, tx)
}

// Stale brings the index level with a path, for a plan that found the tree ahead of the index, and
// returns ErrStale. Errors: ErrBusy where an operation under way writes the path; those of
// Owner.Level.
func (g *Group) Stale(path string) error {
	if g.w.Holders(Path, path) > 0 {
		return ErrBusy
	}
	if err := g.w.Owner.Level(g.Ctx, path); err != nil {
		return err
	}
	return ErrStale
}

// Present checks that what the index says lies at path does. Errors: those of Stale, where it does
// not or cannot be looked at.
func (g *Group) Present(path string) error {
	if _, err := g.w.Tree.Stat(path); err != nil {
		return g.Stale(path)
	}
	return nil
}

// retry has the operation planned again, some times.
func (g *Group) retry(tx *Tx) {
	if !tx.isTired() {
		g.w.Later(tx)
	}
}

// isTired counts how often the operation was planned, and refuses it where that was too often.
func (tx *Tx) isTired() bool {
	if tx.tries++; tx.tries < maxTries {
		return false
	}
	tx.err = &refusal.Error{What: refusal.TreeRestless}
	tx.answer()
	return true
}

func (g *Group) stage(tx *Tx) error {
	for _, f := range tx.Writes {
		tx.Paths = append(tx.Paths, f.Path)
		g.step("stage " + f.Path)
		if err := g.c.Stage(f, stageName(g.Number, g.staged)); err != nil {
			g.undo(tx, err) // no journal knows of it
			return err
		}
		g.staged++
	}
	return nil
}

// undo takes an operation that failed with err back, and returns err; or refusal.Unsure where that
// failed too.
func (g *Group) undo(tx *Tx, err error) error {
	for _, f := range tx.Writes {
		if uerr := g.c.Undo(f); uerr != nil {
			g.w.Log.Error("a failed operation could not be taken back", "path", f.Path, "error", uerr)
			g.w.Owner.Edited(nil, true)
			g.unsure, err = true, refusal.Unsure(errors.Join(err, uerr))
		}
	}
	return err
}

// step tells a fault test where the writer is.
func (g *Group) step(name string) {
	if f := g.w.Step; f != nil {
		f(name)
	}
}

// publish renames. An operation of which a file cannot be put into place is taken back as a whole;
// where the cause is what somebody made or removed meanwhile, it is planned again.
func (g *Group) publish() {
	kept := g.txs[:0]
	for _, tx := range g.txs {
		err := g.publishTx(tx)
		if err == nil {
			kept = append(kept, tx)
			continue
		}
		tx.err = g.undo(tx, g.dropInJournal(err, tx))
		g.retire(tx)
		if tx.err == err && (errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist)) {
			tx.err = nil
			g.w.Owner.Edited(tx.Paths, false)
			g.retry(tx)
			continue
		}
		g.w.failing.tell(tx.err)
		tx.answer()
	}
	clear(g.txs[len(kept):])
	g.txs = kept
}

func (g *Group) publishTx(tx *Tx) error {
	for _, f := range tx.Writes {
		g.step("rename " + f.Path)
		if err := g.c.Publish(f); err != nil {
			return err
		}
	}
	return nil
}

// dropInJournal says in the journal, durably, that operations that failed with err are to be taken
// back, before they are. It returns err; or refusal.Unsure where that failed too.
func (g *Group) dropInJournal(err error, txs ...*Tx) error {
	places := make([]int, len(txs))
	for i, tx := range txs {
		places[i] = tx.place
	}
	if derr := g.w.journal.dropOps(g.Number, places); derr != nil {
		g.w.Log.Error("a failed operation could not be taken back in the journal; the next start may do it", "error", derr)
		g.unsure = true
		return refusal.Unsure(errors.Join(err, derr))
	}
	return err
}

// forget has the journal forget the group, unless the next start has something to do for it.
func (g *Group) forget() {
	if !g.unsure {
		g.w.journal.done(g.Number)
	}
}

// fail takes every operation of the group back and ends it.
func (g *Group) fail(err error) {
	err = g.dropInJournal(err, g.txs...)
	g.w.failing.tell(err)
	for _, tx := range g.txs {
		tx.err = g.undo(tx, err)
	}
	g.forget()
	g.end()
	g.w.Look() // what was reported of its paths may be ingested now
}

// end answers every operation of the group, which holds nothing any longer.
func (g *Group) end() {
	g.close()
	for _, tx := range g.txs {
		g.retire(tx)
		tx.answer()
	}
	g.w.poke()
}

// retire ends what an operation holds.
func (g *Group) retire(tx *Tx) {
	g.w.flight.retire(tx)
	if tx.err != nil {
		g.w.Owner.Failed(&tx.Op)
	}
}

func (g *Group) record() journalRecord {
	r := journalRecord{Group: g.Number}
	for i, tx := range g.txs {
		tx.place = i
		op := journalOp{
			Verb:    tx.Verb,
			Agent:   tx.Agent,
			ID:      tx.ID,
			IDs:     tx.IDs,
			Door:    tx.Door,
			Summary: tx.Summary,
			At:      tx.At,
		}
		for _, f := range tx.Writes {
			op.Files = append(op.Files, journalEntry{f.Path, f.Action, f.Sum, f.Staged, f.Was})
		}
		r.Ops = append(r.Ops, op)
	}
	return r
}

func (g *Group) paths() (all []string) {
	for _, tx := range g.txs {
		all = append(all, tx.Paths...)
	}
	return all
}

func (g *Group) stagedPaths() []string {
	all := []string{format.JournalFile}
	for _, tx := range g.txs {
		for _, f := range tx.Writes {
			all = append(all, tree.TmpDir+"/"+f.Staged, path.Dir(f.Path)+"/.")
		}
	}
	return all
}
