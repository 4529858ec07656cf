package writer

import (
	"errors"
	"io/fs"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// Replace plans a file that may exist. What somebody else wrote there is in the audit first
// (invariant I5). Errors: as of preserve.
func (g *Group) Replace(tx *Tx, path string, data []byte) error {
	was, err := g.preserve(path)
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

// Remove plans the removal of a file, if there is one; what somebody else wrote there is in the
// audit first (invariant I5). Errors: as of preserve.
func (g *Group) Remove(tx *Tx, path string) error { return g.RemoveAll(tx, []string{path}) }

// RemoveAll is Remove for several files, which are looked up in the audit together. Errors: as
// Remove.
func (g *Group) RemoveAll(tx *Tx, paths []string) error {
	was, err := g.preserveAll(paths)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if was[path] != "" {
			tx.Writes = append(tx.Writes, &tree.Write{Path: path, Sum: was[path], Action: tree.Remove})
		}
	}
	return nil
}

// Take is Remove for the file that has the SHA-256 sum, and for no other: false where nothing lies
// at path, or something else. What is written or taken away there before the group is published has
// the operation planned again. Errors: as of Remove.
func (g *Group) Take(tx *Tx, path, sum string) (bool, error) {
	was, err := g.preserve(path)
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

// preserve is preserveAll for one path.
func (g *Group) preserve(path string) (was string, err error) {
	all, err := g.preserveAll([]string{path})
	return all[path], err
}

// preserveAll returns the SHA-256 of what lies at each path once that is in the audit, "" where
// nothing does. What the writer itself wrote there and is not committed yet needs no preserving: its
// own next version replaces it. What somebody writes there later publish finds. Errors: ErrBusy,
// ErrStale, those of Owner.Preserve and of reading a file.
func (g *Group) preserveAll(paths []string) (was map[string]string, err error) {
	w := g.w
	was = map[string]string{}
	var others []string
	for _, path := range paths {
		if w.Holders(Path, path) > 0 {
			return nil, ErrBusy
		}
		if was[path], err = w.sumOf(path); err != nil {
			return nil, err
		}
		w.mu.Lock()
		own, ok := w.own[path]
		w.mu.Unlock()
		if was[path] != "" && !(ok && own.sum == was[path]) {
			others = append(others, path)
		}
	}
	if len(others) == 0 {
		return was, nil
	}
	if err := w.Owner.Preserve(g.Ctx, others); err != nil {
		return nil, err
	}
	for _, path := range others { // which of two versions is in the audit is not known
		if now, err := w.sumOf(path); err != nil || now != was[path] {
			return nil, errors.Join(err, ErrStale)
		}
	}
	return was, nil
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

// committed forgets what a group wrote that is in a commit. The audit calls it, from a goroutine of
// its own or of one who flushes.
func (w *Writer) committed(group uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for path, own := range w.own {
		if own.group == group {
			delete(w.own, path)
		}
	}
}
