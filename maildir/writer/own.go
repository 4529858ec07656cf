package writer

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// Replace plans a file that may exist. What somebody else wrote there is in the audit first
// (invariant I5). Errors: as of preserve.
func (g *Group) Replace(tx *Tx, path string, data []byte) error {
	was, err := g.preserve(tx, path)
	if err != nil {
		return err
	}
	tx.Writes = append(tx.Writes, &tree.Write{
		Path:   path,
		Data:   data,
		Sum:    tree.SHA256(data),
		Was:    was,
		Action: tree.Replace,
	})
	return nil
}

// Remove plans the removal of files, where they are there; what somebody else wrote there is in the audit
// first (invariant I5). Errors: as of preserve.
func (g *Group) Remove(tx *Tx, paths ...string) error {
	for _, path := range paths {
		was, err := g.preserve(tx, path)
		if err != nil {
			return err
		}
		if was != "" {
			tx.Writes = append(tx.Writes, &tree.Write{Path: path, Sum: was, Action: tree.Remove})
		}
	}
	return nil
}

// Take is Remove for the file that has the SHA-256 sum, and for no other: false where nothing lies
// at path, or something else. What is written or taken away there before the group is published has
// the operation planned again. Errors: as of Remove.
func (g *Group) Take(tx *Tx, path, sum string) (bool, error) {
	was, err := g.preserve(tx, path)
	if err != nil || was != sum {
		return false, err
	}
	tx.Writes = append(tx.Writes, &tree.Write{
		Path:   path,
		Sum:    sum,
		Action: tree.Remove,
		There:  true,
	})
	return true, nil
}

// preserve returns the SHA-256 of what lies at path, "" where nothing does, and notes what is not known to
// be in the audit: the operation is planned again once it is (save). What the writer itself wrote there and
// is not committed yet needs no preserving: its own next version replaces it. What somebody writes there
// later publish finds. Errors: those of reading a file.
func (g *Group) preserve(tx *Tx, path string) (was string, err error) {
	w := g.w
	if was, err = w.sumOf(path); err != nil || was == "" {
		return "", err
	}
	w.mu.Lock()
	own := w.own[path]
	w.mu.Unlock()
	if own.sum != was && tx.saved[path] != was {
		tx.unsaved[path] = was
	}
	return was, nil
}

// save has what the operation would replace in the audit and then the operation planned again. Run goes
// on meanwhile.
func (w *Writer) save(ctx context.Context, tx *Tx) {
	if tx.isTired() {
		return
	}
	if tx.saved == nil {
		tx.saved = map[string]string{}
	}
	w.mu.Lock()
	w.saves++
	w.mu.Unlock()
	go func() {
		err := w.Owner.Preserve(ctx, slices.Sorted(maps.Keys(tx.unsaved)))
		for path, sum := range tx.unsaved { // which of two versions is in the audit is not known
			if now, rerr := w.sumOf(path); err == nil && rerr == nil && now == sum {
				tx.saved[path] = sum
			}
		}
		w.mu.Lock()
		w.saves--
		if err == nil {
			w.again = append(w.again, tx)
		}
		w.mu.Unlock()
		if err != nil {
			tx.answer(err)
		}
		w.poke()
	}()
}

// sumOf is the SHA-256 of the file at path, "" where there is none.
func (w *Writer) sumOf(path string) (string, error) {
	data, _, err := w.Tree.Read(path, w.Tree.MaxFile()+format.MaxHeader)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return tree.SHA256(data), nil
}

// ownWrite is the content that a group not yet committed gave a path.
type ownWrite struct {
	sum   string
	group uint64
}

// keepOwn notes what the group wrote, but for messages: they are seldom replaced.
func (g *Group) keepOwn() {
	g.w.mu.Lock()
	defer g.w.mu.Unlock()
	for _, tx := range g.txs {
		for _, f := range tx.Writes {
			if !strings.HasSuffix(f.Path, ".md") && int64(len(f.Data)) <= format.MaxSmall {
				g.w.own[f.Path] = ownWrite{f.Sum, g.Number}
			}
		}
	}
}

// committed forgets what a group wrote that is in a commit, and has the journal forget the group unless the
// next start has something to do for it. The audit calls it, from a goroutine of its own or of one who flushes.
func (w *Writer) committed(group uint64, forget bool) {
	if forget {
		w.journal.done(group)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for path, own := range w.own {
		if own.group == group {
			delete(w.own, path)
		}
	}
}
