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

// What a start does with what a crash left behind, from the journal (invariants I3 and I6). See
// docs/durability.md, "Three notes, and who reads each at a start".

// recoverTree finishes or drops what a crash left behind: each operation of the journal is
// afterwards whole or absent, and tmp is empty. It returns the journal, which holds those that are
// whole and not known to be in a commit, and these by group, for the history to commit those it has
// not.
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
		log.Info("operations of an interrupted run", "whole", finished, "absent", absent)
		if err := t.Sync(touched); err != nil {
			return nil, nil, err
		}
	}
	for _, r := range left { // a later group may have replaced what an earlier one wrote
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
	if err := j.restart(left); err != nil { // the old one stays: the next start does the same again
		log.Warn("the journal of an interrupted run is kept as it was", "error", err)
	}
	if err := t.EmptyTmp(); err != nil {
		return nil, nil, err
	}
	return j, whole, nil
}

// recoveredGroup is what a journal had to say of a group: its operations that are whole.
type recoveredGroup struct {
	number uint64
	ops    []Op
}

// recoverGroup makes each operation of a group whole or absent, and returns those that are whole.
func recoverGroup(t *tree.Tree, c *tree.Changer, r journalRecord, log *slog.Logger) (kept []journalOp, err error) {
	for n, op := range r.Ops {
		whole, err := recoverOp(t, c, op, r.flags[n] == dropped)
		if err != nil {
			return nil, fmt.Errorf("finish %s of an interrupted run: %w", op.Verb, err)
		}
		if whole {
			kept = append(kept, op)
		}
		log.Debug("operation of an interrupted run", "verb", op.Verb, "agent", op.Agent, "id", op.ID, "whole", whole)
	}
	return kept, nil
}

// recovered is the operation as the history is told of it again.
func recoveredOps(t *tree.Tree, op journalOp) ([]Op, error) {
	o := Op{
		Verb:      op.Verb,
		Agent:     op.Agent,
		ID:        op.ID,
		Door:      op.Door,
		Summary:   op.Summary,
		At:        op.At,
		Recovered: true,
	}
	for _, f := range op.Files {
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

// loadJournal returns the groups that the journal has not seen the end of, in order.
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

// recoverOp finishes one operation when every file of it that is not in its place is intact in
// staging, and drops it when one is not: renames begin only once all are durable. A file in its
// place with other bytes has been changed by somebody since: that is theirs.
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
		case at.placed && !at.asBefore: // in its place, perhaps changed by somebody since
			placed++
		case !at.staged:
			lost++
		default:
			damaged++
		}
	}
	if damaged > 0 || lost > 0 && placed == 0 { // not all of it became durable, so nothing of it was renamed
		return false, nil
	}
	for i := range ready {
		if err := c.MakeDir(path.Dir(ready[i].Path)); err != nil {
			return false, err
		}
		err := c.Publish(&ready[i])
		if errors.Is(err, tree.ErrChanged) { // what somebody wrote since is theirs
			err = c.Undo(&ready[i])
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
	}
	return true, nil
}

// takeBack undoes what was done to a file of a dropped operation, unless somebody changed it since.
func takeBack(t *tree.Tree, c *tree.Changer, f journalEntry) error {
	w := tree.Write{Path: f.Path, Action: f.Action, Sum: f.Sum, Was: f.Was, Staged: f.Staged, Done: true}
	at, err := standingOf(t, f)
	switch {
	case err != nil:
		return err
	case f.Action == tree.Remove && (!at.staged || at.placed), f.Action != tree.Remove && !at.asAfter:
		return nil
	case f.Action != tree.Remove:
		w.Gone = !at.staged // there was nothing before it
	}
	return tree.IgnoreGone(c.Undo(&w))
}

// standing is how a file of the journal stands after a crash.
type standing struct {
	staged   bool // something lies below tmp for it: the new file, or what was replaced or removed
	intact   bool // that is the new file, whole
	placed   bool // something lies at its path
	asBefore bool // that is what the operation was to replace or remove
	asAfter  bool // that is what the operation was to put there
}

// standing looks at a file of the journal. The error is a fault of the machine: what it would hide
// must not be taken for gone, or half an operation would stay.
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
