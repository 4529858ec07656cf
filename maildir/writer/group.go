package writer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// MaxGroup is the maximum number of operations in one group.
const MaxGroup = 256

// maxTries is the maximum number of times that an operation is planned because the tree is ahead of the index.
const maxTries = 8

// Group is a set of operations that are written together (group commit). While a group is being planned, the index
// contains everything written before the group, and nothing from the group itself. To find out what the group writes, a
// plan calls Writes and Coming.
type Group struct {
	Ctx    context.Context // for calls that a plan makes; it does not end when a caller's context ends
	Now    time.Time       // when the current plan began, in UTC
	Number uint64          // unique among this tree's groups

	w      *Writer
	c      *tree.Changer
	txs    []*Tx
	facts  map[string]bool // the facts that the group's operations depend on
	alone  bool            // the group consists of one operation with Tx.Alone set
	staged int
	unsure bool // an operation could not be undone, so the journal keeps the group for the next start
}

// plan calls the operation's Plan and stages its files. An operation that conflicts with another operation in the group
// waits, and is planned again in the next group.
func (g *Group) plan(tx *Tx) {
	err := tx.gone()
	if err == nil && tx.Sure {
		err = g.w.Owner.Sure()
	}
	if err != nil {
		tx.answer(err)
		return
	}
	if g.alone || tx.Alone && len(g.txs) > 0 || slices.ContainsFunc(tx.Facts, func(f string) bool { return g.facts[f] }) {
		g.w.Later(tx)
		return
	}
	g.Now = g.w.Now().UTC()
	tx.At, tx.Writes, tx.Paths = g.Now, nil, nil
	tx.unsaved = map[string]string{}
	err = tx.Plan(g)
	tx.Door, tx.Step = format.DoorOf(tx.ctx), format.StepOf(tx.ctx)
	var behind *behindError
	switch {
	case errors.As(err, &behind):
		g.retry(tx, behind.path)
	case err != nil || len(tx.Writes) == 0:
		tx.answer(err)
	case len(tx.unsaved) > 0:
		g.w.save(g.Ctx, tx)
	case slices.ContainsFunc(tx.Writes, func(f *tree.Write) bool { return g.Writes(f.Path) }):
		g.w.Later(tx)
	default:
		g.enter(tx)
	}
}

// enter stages a planned operation and adds it to the group.
func (g *Group) enter(tx *Tx) {
	g.w.noteGroup(tx)
	if err := g.stage(tx); err != nil {
		g.w.failing.tell(err)
		g.answer(tx, err)
		return
	}
	for _, f := range tx.Facts {
		g.facts[f] = true
	}
	g.alone = tx.Alone
	g.txs = append(g.txs, tx)
}

// Writes reports whether an operation in progress, such as one of this group, writes the file at path.
func (g *Group) Writes(path string) bool { return g.w.Writes(path) }

// Coming counts the messages that the group's operations write below a folder.
func (g *Group) Coming(folder string) (n int) {
	for _, tx := range g.txs {
		for _, f := range tx.Writes {
			if strings.HasPrefix(f.Path, folder+"/") && strings.HasSuffix(f.Path, ".md") {
				n++
			}
		}
	}
	return n
}

// behindError means that the tree is ahead of the index at a path.
type behindError struct{ path string }

func (*behindError) Error() string { return "the tree is ahead of the index" }

// Behind returns the error that a plan must return if it finds that the tree is ahead of the index at path. The
// writer then ingests that path and plans the operation again.
func (g *Group) Behind(path string) error { return &behindError{path} }

// Present returns nil if the file at path, which is in the index, still exists. Otherwise, or if this cannot be
// checked, it returns Behind's error.
func (g *Group) Present(path string) error {
	if _, err := g.c.Stat(path); err != nil {
		return g.Behind(path)
	}
	return nil
}

// Stat returns the state of a file. It returns any error from the file system.
func (g *Group) Stat(path string) (tree.FileStat, error) { return g.c.Stat(path) }

// retry schedules the operation to be planned again once the index is up to date at the paths. It gives up after
// maxTries attempts.
func (g *Group) retry(tx *Tx, paths ...string) {
	if tx.isTired() {
		g.w.Owner.Edited(paths, false)
		return
	}
	tx.behind = paths
	g.w.Later(tx)
}

// isTired counts the attempts to plan the operation. After maxTries attempts, it refuses the operation and returns
// true.
func (tx *Tx) isTired() bool {
	if tx.tries++; tx.tries < maxTries {
		return false
	}
	tx.answer(&refusal.Error{
		What: refusal.Unavailable("This project's files are changing faster than the server can read them; nothing " +
			"was changed. Try again."),
	})
	return true
}

func (g *Group) stage(tx *Tx) error {
	for _, f := range tx.Writes {
		if tracked(f.Path) {
			tx.Paths = append(tx.Paths, f.Path)
		}
		g.step("stage " + f.Path)
		if err := g.c.Stage(f, stageName(g.Number, g.staged)); err != nil {
			err = fmt.Errorf("cannot stage %s: %w", f.Path, err)
			g.undo(tx, err) // the operation is not in the journal yet
			return err
		}
		g.staged++
	}
	return nil
}

// undo reverts an operation that failed with err. It returns err, or refusal.Unsure if reverting failed too.
func (g *Group) undo(tx *Tx, err error) error {
	for _, f := range tx.Writes {
		if uerr := g.c.Undo(f); uerr != nil {
			g.w.Log.Error("cannot undo a failed operation", "path", f.Path, "error", uerr)
			g.w.Owner.Edited(nil, true)
			g.unsure, err = true, refusal.Unsure(errors.Join(err, uerr))
		}
	}
	return err
}

// step tells a fault test which step the writer has reached.
func (g *Group) step(name string) {
	if f := g.w.Step; f != nil {
		f(name)
	}
}

// write makes the group's files durable, renames them into place, makes the renames durable, ingests the files, records
// the operations in the history, and responds to the callers. After an error, the caller must undo the group.
func (g *Group) write() error {
	w := g.w
	g.step("journal")
	if err := w.journal.append(g.record()); err != nil {
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	g.step("sync staged")
	if err := w.Tree.Sync(g.stagedPaths()); err != nil {
		return fmt.Errorf("cannot make the staged files durable: %w", err)
	}
	g.publish()
	if len(g.txs) == 0 {
		g.forget()
		g.end()
		return nil
	}
	g.step("sync renamed")
	if err := w.Tree.Sync(g.writtenPaths()); err != nil {
		return fmt.Errorf("cannot make the renamed files durable: %w", err)
	}
	found := g.findWritten()
	g.step("ingest")
	if err := w.Owner.Ingest(g.Ctx, g.paths(), found); err != nil {
		w.Log.Error("cannot write the index", "error", err)
		w.Owner.Edited(nil, true)
		return err
	}
	w.failing.tell(nil)
	g.keepOwn()
	now := time.Now()
	for _, tx := range g.txs {
		for _, f := range tx.Writes {
			if is, ok := found[f.Path]; ok && !is.Gone {
				w.echoes.add(f.Path, echo{is.Stat, f.Sum}, now)
			}
			g.step("tidy " + f.Path)
			g.c.Tidy(f)
		}
	}
	g.step("record")
	number, forget := g.Number, !g.unsure // copied so that the memory of g and its operations can be freed
	w.Owner.Record(g.told(), func() { w.committed(number, forget) })
	for _, tx := range g.txs {
		if tx.After != nil {
			tx.After()
		}
	}
	g.step("answer")
	g.end()
	return nil
}

// publish renames the staged files into place. If one file of an operation cannot be renamed into place, publish
// undoes the whole operation. If another program caused this by changing, creating or removing a file in the
// meantime, the operation is planned again.
func (g *Group) publish() {
	kept := g.txs[:0]
	for _, tx := range g.txs {
		err := g.publishTx(tx)
		if err == nil {
			kept = append(kept, tx)
			continue
		}
		undone := g.undo(tx, g.dropInJournal(err, tx))
		if undone == err && (errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist)) {
			g.w.Owner.Failed(&tx.Op)
			g.retry(tx, tx.Paths...)
			continue
		}
		g.w.failing.tell(undone)
		g.answer(tx, undone)
	}
	clear(g.txs[len(kept):])
	g.txs = kept
}

func (g *Group) publishTx(tx *Tx) error {
	for _, f := range tx.Writes {
		g.step("rename " + f.Path)
		if err := g.c.Publish(f); err != nil {
			return fmt.Errorf("cannot move %s into place: %w", f.Path, err)
		}
	}
	return nil
}

// findWritten checks the group's files before they are ingested. It returns, by path, the files that have not changed
// since they were staged. If a file cannot be checked because of a machine fault, it is treated as unchanged. This is
// safe because the index checks rows that came from the writer again when the watcher reports the file.
func (g *Group) findWritten() map[string]tree.Written {
	found := map[string]tree.Written{}
	for _, tx := range g.txs {
		for _, f := range tx.Writes {
			st, err := g.c.Stat(f.Path)
			fault := tree.FaultOf(err)
			switch {
			case f.Action == tree.Remove && (fault == tree.FaultGone || fault == tree.FaultMachine):
				found[f.Path] = tree.Written{Gone: true}
			case f.Action == tree.Remove:
			case fault == tree.FaultMachine:
				found[f.Path] = tree.Written{Data: f.Data, Stat: f.Stat}
			case err == nil && st.Inode == f.Stat.Inode && st.Size == f.Stat.Size && st.MTime == f.Stat.MTime:
				f.Stat = st
				found[f.Path] = tree.Written{Data: f.Data, Stat: st}
			}
		}
	}
	return found
}

// told returns the group's operations in the form that the history expects.
func (g *Group) told() (ops []Op) {
	for _, tx := range g.txs {
		tx.Written = map[string]tree.Written{}
		for _, f := range tx.Writes {
			if !tracked(f.Path) {
				continue
			}
			tx.Written[f.Path] = tree.Written{Data: f.Data, Stat: f.Stat, Gone: f.Action == tree.Remove}
		}
		ops = append(ops, tx.each(tx.IDs)...)
	}
	return ops
}

// dropInJournal durably records in the journal that some operations, which failed with err, are about to be undone.
// It returns err, or refusal.Unsure if writing the record failed too.
func (g *Group) dropInJournal(err error, txs ...*Tx) error {
	places := make([]int, len(txs))
	for i, tx := range txs {
		places[i] = tx.place
	}
	if derr := g.w.journal.dropOps(g.Number, places); derr != nil {
		g.w.Log.Error("cannot remove a failed operation from the journal; the next start may carry it out", "error", derr)
		g.unsure = true
		return refusal.Unsure(errors.Join(err, derr))
	}
	return err
}

// forget removes the group from the journal, unless an operation of the group still has to be undone at the next
// start.
func (g *Group) forget() {
	if !g.unsure {
		g.w.journal.done(g.Number)
	}
}

// fail undoes every operation of the group after the error err.
func (g *Group) fail(err error) {
	err = g.dropInJournal(err, g.txs...)
	g.w.failing.tell(err)
	for _, tx := range g.txs {
		tx.err = g.undo(tx, err)
	}
	g.forget()
	g.end()
}

// end ends the group and responds to the callers of its operations.
func (g *Group) end() {
	g.w.endGroup()
	for _, tx := range g.txs {
		g.answer(tx, tx.err)
	}
}

// answer responds to the caller of one of the group's operations. If err is not nil, it also calls Owner.Failed. It
// logs unexpected errors, because the response to the caller does not contain the path of the file.
func (g *Group) answer(tx *Tx, err error) {
	if err != nil {
		g.w.Owner.Failed(&tx.Op)
		ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
		if said := (*refusal.Error)(nil); !errors.As(err, &said) && !ended {
			g.w.Log.Warn("an operation failed; nothing was written", "verb", tx.Verb, "agent", tx.Agent, "error", err)
		}
	}
	tx.answer(err)
}

func (g *Group) record() journalRecord {
	r := journalRecord{Group: g.Number}
	for i, tx := range g.txs {
		tx.place = i
		op := journalOp{
			Verb:    tx.Verb,
			Agent:   tx.Agent,
			ID:      tx.ID,
			Marks:   tx.Marks,
			IDs:     tx.IDs,
			Door:    tx.Door,
			Step:    tx.Step,
			Summary: tx.Summary,
			Merges:  tx.Merges,
			At:      tx.At,
		}
		for _, f := range tx.Writes {
			op.Files = append(op.Files, journalEntry{f.Path, f.Action, f.Sum, f.Staged, f.Was})
		}
		r.Ops = append(r.Ops, op)
	}
	return r
}

// paths returns the paths to report to the index and the history.
func (g *Group) paths() (all []string) {
	for _, tx := range g.txs {
		all = append(all, tx.Paths...)
	}
	return all
}

func (g *Group) writtenPaths() (all []string) {
	for _, tx := range g.txs {
		for _, f := range tx.Writes {
			all = append(all, f.Path)
		}
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
