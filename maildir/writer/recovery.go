package writer

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// The code in this file recovers a tree from its journal after a crash (invariants I3 and I6). See
// docs/explanation/durability.md, "Three notes that the server reads at startup".

// recoverTree finishes or drops the operations that a crash interrupted. Afterwards, each operation in the journal is
// complete or absent, and TmpDir is empty. It returns a journal of the complete operations that may not have been
// committed yet. It also returns these operations by group, so that the history can commit those that it lacks.
func recoverTree(t *tree.Tree, key []byte, log *slog.Logger) (*journal, []recoveredGroup, error) {
	c := t.Changer(0)
	defer c.Close()
	if err := c.MakeDir(tree.TmpDir); err != nil {
		return nil, nil, err
	}
	records, err := loadJournal(t, key)
	if err != nil {
		return nil, nil, err
	}
	var left []journalRecord
	var whole []recoveredGroup
	var touched []string
	finished, absent := 0, 0
	for _, r := range records {
		kept, err := recoverGroup(t, c, r, log)
		if err != nil {
			return nil, nil, err
		}
		finished, absent = finished+len(kept), absent+len(r.Ops)-len(kept)
		for _, op := range r.Ops {
			for _, f := range op.Files {
				touched = append(touched, f.Path)
			}
		}
		if len(kept) > 0 {
			left = append(left, journalRecord{Group: r.Group, Ops: kept})
		}
	}
	if len(touched) > 0 {
		log.Info("checked the previous run's uncommitted operations", "whole", finished, "absent", absent)
		if err := t.Sync(touched); err != nil {
			return nil, nil, err
		}
	}
	for _, r := range left { // do this after all groups, because a later group may have replaced an earlier group's files
		g := recoveredGroup{number: r.Group}
		for _, op := range r.Ops {
			ops, err := recoveredOps(t, op)
			if err != nil {
				return nil, nil, err
			}
			g.ops = append(g.ops, ops...)
		}
		whole = append(whole, g)
	}
	j, err := openJournal(t, key)
	if err != nil {
		return nil, nil, err
	}
	if err := j.restart(left); err != nil { // the old journal is kept, and recovery runs again at the next start
		log.Warn("cannot restart the journal; keeping the previous run's journal unchanged", "error", err)
	}
	if err := t.EmptyTmp(); err != nil {
		return nil, nil, err
	}
	return j, whole, nil
}

// recoveredGroup contains the operations of a group that are complete after recovery.
type recoveredGroup struct {
	number uint64
	ops    []Op
}

// recoverGroup completes or drops each operation of a group, and returns the complete operations.
func recoverGroup(t *tree.Tree, c *tree.Changer, r journalRecord, log *slog.Logger) (kept []journalOp, err error) {
	for n, op := range r.Ops {
		whole, err := recoverOp(t, c, op, r.flags[n] == dropped)
		if err != nil {
			return nil, fmt.Errorf("cannot recover the previous run's %s operation: %w", op.Verb, err)
		}
		if whole {
			kept = append(kept, op)
		}
		log.Debug("checked an uncommitted operation of the previous run", "verb", op.Verb, "agent", op.Agent, "id", op.ID, "whole", whole)
	}
	return kept, nil
}

// recoveredOps converts an operation to the form that the history expects.
func recoveredOps(t *tree.Tree, op journalOp) ([]Op, error) {
	o := Op{
		Verb:      op.Verb,
		Agent:     op.Agent,
		ID:        op.ID,
		Marks:     op.Marks,
		Door:      op.Door,
		Step:      op.Step,
		Summary:   op.Summary,
		Merges:    op.Merges,
		At:        op.At,
		Recovered: true,
	}
	for _, f := range op.Files {
		if !tracked(f.Path) {
			continue
		}
		o.Paths = append(o.Paths, f.Path)
		there, err := t.Exists(f.Path)
		asLeft := f.Action == tree.Remove && !there
		if err == nil && f.Action == tree.Replace {
			asLeft, err = t.HasSHA256(f.Path, f.Sum)
		}
		if err != nil {
			return nil, err
		}
		if asLeft {
			o.Revised = append(o.Revised, f.Path)
		}
	}
	return o.each(op.IDs), nil
}

// loadJournal returns the groups in the journal that are not marked as done, in order.
func loadJournal(t *tree.Tree, key []byte) ([]journalRecord, error) {
	f, st, err := t.Open(format.JournalFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !st.Mode.IsRegular() {
		return nil, tree.NotRegular(st.Mode)
	}
	return outstanding(readJournal(f, key)), nil
}

func outstanding(records []journalRecord) []journalRecord {
	var all []journalRecord
	at := map[uint64]int{}
	for _, r := range records {
		if len(r.Ops) > 0 {
			at[r.Group] = len(all)
			all = append(all, r)
		}
		for _, g := range r.Done {
			if i, ok := at[g]; ok {
				all[i].Ops = nil
			}
		}
	}
	return slices.DeleteFunc(all, func(r journalRecord) bool { return len(r.Ops) == 0 })
}

// recoverOp completes an operation if all of its files had become durable, and reports whether it did. Otherwise, or if
// drop is set, it drops the operation. No file is renamed until all files are durable. Therefore, an operation has
// renamed nothing if a staged file is damaged, or if a staged file is missing and no file is in place. recoverOp keeps
// files that another program has changed since then.
func recoverOp(t *tree.Tree, c *tree.Changer, op journalOp, drop bool) (whole bool, err error) {
	if drop {
		for _, f := range op.Files {
			if err := takeBack(t, c, f); err != nil {
				return false, err
			}
		}
		return false, nil
	}
	var ready []tree.Write
	placed, lost, damaged := 0, 0, 0
	for _, f := range op.Files {
		at, err := standingOf(t, f)
		if err != nil {
			return false, err
		}
		switch {
		case f.Action == tree.Remove:
			if at.asBefore && !at.staged {
				ready = append(ready, tree.Write{Path: f.Path, Action: tree.Remove, Sum: f.Sum, Staged: f.Staged})
			} else {
				placed++
			}
		case at.intact:
			ready = append(ready, tree.Write{Path: f.Path, Action: f.Action, Sum: f.Sum, Was: f.Was, Staged: f.Staged})
		case at.placed && !at.asBefore: // the file is in place, but another program may have changed it since then
			placed++
		case !at.staged:
			lost++
		default:
			damaged++
		}
	}
	if damaged > 0 || lost > 0 && placed == 0 { // at least one file had not become durable, so none was renamed
		return false, nil
	}
	for i := range ready {
		if err := c.MakeDir(path.Dir(ready[i].Path)); err != nil {
			return false, err
		}
		err := c.Publish(&ready[i])
		if errors.Is(err, tree.ErrChanged) { // keep the file that another program has written since then
			err = c.Undo(&ready[i])
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
	}
	return true, nil
}

// takeBack undoes a dropped operation's change to a file, unless another program has changed the file since then.
func takeBack(t *tree.Tree, c *tree.Changer, f journalEntry) error {
	w := tree.Write{Path: f.Path, Action: f.Action, Sum: f.Sum, Was: f.Was, Staged: f.Staged, Done: true}
	at, err := standingOf(t, f)
	switch {
	case err != nil:
		return err
	case f.Action == tree.Remove && (!at.staged || at.placed), f.Action != tree.Remove && !at.asAfter:
		return nil
	case f.Action != tree.Remove:
		w.Gone = !at.staged // the file was created, not replaced
	}
	return tree.IgnoreGone(c.Undo(&w))
}

// standing describes the state of a file in the journal after a crash.
type standing struct {
	staged   bool // a staged file exists: the new file, or the old file that was replaced or removed
	intact   bool // the staged file is the complete new file
	placed   bool // a file exists at the path
	asBefore bool // the file at the path is the old file that the operation replaces or removes
	asAfter  bool // the file at the path is the new file
}

// standingOf determines the state of a file that the journal lists. It returns an error for a machine fault, because
// treating an unreadable file as gone could leave an operation half done.
func standingOf(t *tree.Tree, f journalEntry) (at standing, err error) {
	before := f.Was
	if f.Action == tree.Remove {
		before = f.Sum
	}
	staged := tree.TmpDir + "/" + f.Staged
	if at.staged, err = t.Exists(staged); err == nil {
		at.intact, err = t.HasSHA256(staged, f.Sum)
	}
	if err == nil {
		at.placed, err = t.Exists(f.Path)
	}
	if err == nil && before != "" {
		at.asBefore, err = t.HasSHA256(f.Path, before)
	}
	if err == nil {
		at.asAfter, err = t.HasSHA256(f.Path, f.Sum)
	}
	return at, err
}
