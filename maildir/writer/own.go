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

// Replace plans a write to a path that may exist. If another program wrote the old file, that file is committed first
// (invariant I5). Replace returns any error from preserve.
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

// Remove plans the removal of the files at paths, except those that do not exist. If another program wrote one of the
// files, that file is committed first (invariant I5). Remove returns any error from preserve.
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

// Take is like Remove, but for one file, and only if its SHA-256 is sum. It returns false if there is no file at
// path, or a file with another SHA-256. If the file changes before the group is published, the operation is planned
// again. Take returns any error from Remove.
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

// preserve returns the SHA-256 of the file at path, or "" if there is none. If the history may lack the file,
// preserve adds it to tx.unsaved. In that case, save commits the file before the operation is planned again. Two
// kinds of files need not be committed: an empty file, and a file that the writer itself has written but not
// committed yet. Publish detects later changes. preserve returns any error from reading the file.
func (g *Group) preserve(tx *Tx, path string) (was string, err error) {
	w := g.w
	if was, err = w.sumOf(path); err != nil || was == "" {
		return "", err
	}
	w.mu.Lock()
	own := w.own[path]
	w.mu.Unlock()
	if was != emptySum && own.sum != was && tx.saved[path] != was {
		tx.unsaved[path] = was
	}
	return was, nil
}

// emptySum is the SHA-256 of an empty file.
var emptySum = tree.SHA256(nil)

// save commits the files that the operation would replace or remove, and then schedules the operation to be planned
// again. Run keeps running meanwhile.
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
		for path, sum := range tx.unsaved { // if the file has changed, it is not known which version was committed
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

// sumOf returns the SHA-256 of the file at path, or "" if there is none.
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

// ownWrite is the content that an uncommitted group wrote to a path.
type ownWrite struct {
	sum   string
	group uint64
}

// keepOwn records what the group has written. It omits messages, because they are rarely replaced, and large files.
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

// committed removes a committed group's files from own. If forget is set, it also removes the group from the journal.
// It is called in a goroutine of the history, or in the goroutine of a caller that flushes the history.
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
