package indexer

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/tree"
)

// Ingest implements index.Index. It updates the rows derived from the files at paths. The map written contains files
// that the caller has just written. If another program modifies such a file at the same time, the watcher reports the
// file, and another Ingest follows.
func (x *Index) Ingest(ctx context.Context, slug string, paths []string, written map[string]tree.Written) (index.Ingested, error) {
	p := x.project(slug)
	if p == nil {
		return index.Ingested{}, fmt.Errorf("ingest: project %q is not attached", slug)
	}
	x.write.Lock()
	defer x.write.Unlock()
	if err := ctx.Err(); err != nil {
		return index.Ingested{}, err
	}
	b := x.batch(p)
	b.l.given = written
	if err := x.w.transaction(func() error { return b.ingest(ctx, paths) }); err != nil {
		return index.Ingested{}, fmt.Errorf("ingest: %w", err)
	}
	x.checkpoint(len(b.order))
	return index.Ingested{Changes: b.changes, Unreadable: b.left()}, nil
}

// batch examines a project's files and, in one transaction, writes the rows that differ.
type batch struct {
	x   *Index
	p   *project
	w   *writer
	l   *observer
	new bool // whether the index has no rows for these files and their messages yet; if so, the batch reads none

	known  map[string]*file        // rows in the tables, by path
	loaded map[string]bool         // ids of the messages whose files are all in known
	seen   map[string]*observation // all observations, by path
	order  []*observation          // the observations that differ from known, in the order they were made
	stats  []*observation          // the observations of files whose stamp changed but whose content did not
	// unreadable contains the paths that the batch could not examine because of a machine fault. Their rows do not
	// change.
	unreadable map[string]error

	folders map[string]int64 // folder numbers by path
	aids    map[string]int64 // agent numbers by name
	changes []index.Change
}

func (x *Index) batch(p *project) *batch {
	return &batch{
		x:          x,
		p:          p,
		w:          x.w,
		l:          newLooker(p.tree, x.cfg.Now),
		known:      map[string]*file{},
		loaded:     map[string]bool{},
		seen:       map[string]*observation{},
		unreadable: map[string]error{},
		folders:    map[string]int64{},
		aids:       map[string]int64{},
	}
}

func (b *batch) ingest(ctx context.Context, paths []string) error {
	clean := make([]string, 0, len(paths))
	for _, p := range paths {
		if p, ok := cleanPath(p); ok {
			clean = append(clean, p)
		}
	}
	if err := b.loadKnown(clean); err != nil {
		return err
	}
	for _, p := range clean {
		if err := b.visit(ctx, p); err != nil {
			return err
		}
	}
	// Paths that the caller has just written are files, so nothing can be below them.
	clean = slices.DeleteFunc(clean, func(p string) bool { _, ok := b.l.given[p]; return ok })
	if err := b.visitGone(clean); err != nil {
		return err
	}
	return b.apply()
}

// cleanPath cleans p, a path relative to the tree. It returns false if p cannot be a path in the tree.
func cleanPath(p string) (string, bool) {
	p = path.Clean(filepath.ToSlash(p))
	return p, filepath.IsLocal(p) && !strings.Contains(p, "\x00")
}

// visit examines p or, if p is a folder, all files below it.
func (b *batch) visit(ctx context.Context, p string) error {
	if p != "." && (format.Locate(p).Kind == format.KindIgnored || !b.look(p).folder) {
		return nil
	}
	var found []string
	err := b.p.tree.Walk(ctx, p, func(p string, _ fs.DirEntry) error {
		found = append(found, p)
		return nil
	})
	var unlisted *tree.UnlistedError
	if errors.As(err, &unlisted) {
		for _, f := range unlisted.Folders {
			b.unreadable[f.Path] = cause(f.Err)
		}
		err = nil
	}
	if err == nil {
		err = b.loadKnown(found)
	}
	for _, p := range found {
		b.look(p)
	}
	return err
}

// visitGone examines files below paths that are in the index but were not found by any visit. Such a file was removed,
// its folder was removed, or its folder has become a file. Reading the rows of a folder requires a scan of all of the
// project's files, so visitGone does it only for folders with more files in the index than the visits found.
func (b *batch) visitGone(paths []string) error {
	const below = "SELECT o.fol, o.files FROM json_each(?2) j CROSS JOIN folders o ON o.pid = ?1 AND o.path >= " + given +
		" AND o.path < " + given + " || '0' WHERE o.path = " + given + " OR substr(o.path, length(" + given + ") + 1, 1) = '/'"
	if len(paths) == 0 {
		return nil
	}
	text, args := below, []any{b.p.pid, listed(paths)}
	if slices.Contains(paths, ".") {
		text, args = "SELECT fol, files FROM folders WHERE pid = ?1", args[:1]
	}
	unmet := map[int64]int{} // for each folder, the number of files in the index that no visit found
	err := b.w.each(text, args, func(scan scanner) error {
		var fol int64
		var files int
		err := scan(&fol, &files)
		unmet[fol] = files
		return err
	})
	if err != nil || len(unmet) == 0 {
		return err
	}
	for p := range b.seen {
		if f := b.known[p]; f != nil {
			unmet[f.fol]--
		}
	}
	maps.DeleteFunc(unmet, func(_ int64, files int) bool { return files <= 0 })
	if len(unmet) == 0 {
		return nil
	}
	list, err := json.Marshal(slices.Collect(maps.Keys(unmet)))
	if err != nil {
		return err
	}
	if err := b.loadRows(fileColumns+"files f JOIN folders o USING (fol) WHERE f.pid = ?1 AND f.fol IN (SELECT value FROM json_each(?2))",
		b.p.pid, string(list)); err != nil {
		return err
	}
	paths = nil
	for p, f := range b.known {
		if unmet[f.fol] > 0 {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	for _, p := range paths {
		b.look(p)
	}
	return b.loadKnown(paths)
}

// given is SQL that decodes one name in the list that listed returns.
const given = "CAST(unhex(j.value) AS TEXT)"

// listed encodes a list of names for json_each. The names are in hex, because JSON cannot represent a name that is
// not UTF-8.
func listed(names []string) string {
	var b strings.Builder
	b.WriteString("[")
	for i, name := range names {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(`"` + hex.EncodeToString([]byte(name)) + `"`)
	}
	b.WriteString("]")
	return b.String()
}

// look examines p, but only once per batch, and records any difference from the index.
func (b *batch) look(p string) *observation {
	lk := b.seen[p]
	if lk == nil {
		lk = b.l.at(p, b.known[p])
		b.noteLook(lk)
	}
	return lk
}

// left returns the unreadable paths in sorted order.
func (b *batch) left() []tree.Unreadable {
	var all []tree.Unreadable
	for _, p := range slices.Sorted(maps.Keys(b.unreadable)) {
		all = append(all, tree.Unreadable{Path: p, Err: b.unreadable[p]})
	}
	return all
}

func (b *batch) noteLook(lk *observation) {
	k := b.known[lk.path]
	switch {
	case lk.unreadable != nil:
		b.unreadable[lk.path] = lk.unreadable
	case lk.same:
	case k != nil && lk.file != nil && lk.file.says(k):
		lk.same = true
		if lk.file.stamp != k.stamp {
			b.stats = append(b.stats, lk)
		}
	case k != nil || lk.file != nil:
		b.order = append(b.order, lk)
	}
	b.seen[lk.path] = lk
}

// again reads p even if its stamp is unchanged, because the batch needs its content. It records any difference from
// the index.
func (b *batch) again(p string) *observation {
	if lk := b.seen[p]; lk != nil && !lk.same {
		return lk
	}
	f := *b.known[p]
	f.stamp &^= 1
	lk := b.l.at(p, &f)
	b.noteLook(lk)
	return lk
}

// leaveOut drops all observations of a message whose content could not be read because of err. The message's rows do
// not change.
func (b *batch) leaveOut(id string, err error) {
	isOf := func(lk *observation) bool {
		f := lk.file
		if f == nil {
			f = b.known[lk.path]
		}
		if f == nil || f.id != id {
			return false
		}
		b.unreadable[lk.path] = err
		b.seen[lk.path] = notLooked(lk.path, err)
		return true
	}
	b.order = slices.DeleteFunc(b.order, isOf)
	b.stats = slices.DeleteFunc(b.stats, isOf)
}

// loadKnown reads the rows of the files at paths and of all other files that belong to the same messages.
func (b *batch) loadKnown(paths []string) error {
	if b.new {
		return nil
	}
	var names []string // names of message files
	var pairs strings.Builder
	for _, p := range paths {
		switch id := locate(p).ID; {
		case id == "" && b.known[p] == nil:
			fmt.Fprintf(&pairs, `,["%x","%x"]`, path.Dir(p), path.Base(p))
		case id != "" && !b.loaded[id]:
			b.loaded[id] = true
			names = append(names, format.MessageFiles(id)...)
		}
	}
	if len(names) > 0 {
		err := b.loadRows(fileColumns+"json_each(?2) j CROSS JOIN files f ON f.pid = ?1 AND f.name = "+given+
			" CROSS JOIN folders o USING (fol)", b.p.pid, listed(names))
		if err != nil {
			return err
		}
	}
	if pairs.Len() == 0 {
		return nil
	}
	return b.loadRows(fileColumns+"json_each(?2) j CROSS JOIN folders o ON o.pid = ?1 AND o.path = CAST(unhex(j.value ->> 0) AS TEXT) "+
		"CROSS JOIN files f ON f.pid = ?1 AND f.name = CAST(unhex(j.value ->> 1) AS TEXT) AND f.fol = o.fol",
		b.p.pid, "["+pairs.String()[1:]+"]")
}

// loadRows adds rows to known. It keeps rows that are already in known.
func (b *batch) loadRows(text string, args ...any) error {
	return b.w.each(text, args, func(scan scanner) error {
		f, err := scanFile(scan)
		if err == nil && b.known[f.path] == nil {
			b.known[f.path] = f
		}
		return err
	})
}
