package indexer

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"mailtree/maildir/format"
	"mailtree/maildir/index"
	"mailtree/maildir/tree"
)

// chunk is the number of paths that Reconcile and Rebuild process in one transaction. With a larger chunk, a send could
// wait for more than a few tenths of a second. With a smaller chunk, the commits would be too expensive.
const chunk = 1024

// Reconcile implements index.Index. It compares the whole tree with the rows. It releases the write lock between
// chunks.
func (x *Index) Reconcile(ctx context.Context, slug string, progress func(done int)) (index.Ingested, error) {
	var all index.Ingested
	p := x.project(slug)
	if p == nil {
		return all, fmt.Errorf("reconcile: project %q is not attached", slug)
	}
	defer p.tree.Hold()()
	paths, untimed, err := x.differing(ctx, p, progress)
	if err != nil {
		return all, fmt.Errorf("reconcile: %w", err)
	}
	all.Untimed = untimed
	for part := range chunks(paths) {
		one, err := x.Ingest(ctx, slug, part, nil)
		if err != nil {
			return all, err
		}
		all.Changes, all.Unreadable = append(all.Changes, one.Changes...), append(all.Unreadable, one.Unreadable...)
	}
	return all, nil
}

// Differing implements index.Index. It returns the paths at which the tree and the rows may differ.
func (x *Index) Differing(ctx context.Context, slug string) ([]string, error) {
	p := x.project(slug)
	if p == nil {
		return nil, fmt.Errorf("compare: project %q is not attached", slug)
	}
	paths, _, err := x.differing(ctx, p, nil)
	return paths, err
}

// met is a file that a walk found, or a folder that a walk could not list. The stamp is 0 if the file's state is
// unknown.
type met struct {
	path    string
	stamp   int64
	untimed bool // whether the file is a mark without content
}

// walkAhead is how many chunks a walk may be ahead of the comparison. That many chunks contain about 30 MB of paths.
const walkAhead = 256

// differing lists the files whose stamps differ from their rows, and the paths of rows whose files are gone. The second
// list contains the marks without content. A goroutine walks the tree while differing reads the rows. differing keeps
// hashes of the rows' paths instead of the paths, because a million messages have three million rows.
func (x *Index) differing(ctx context.Context, p *project, progress func(int)) (paths, untimed []string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	seed := maphash.MakeSeed()
	walk := make(chan []met, walkAhead)
	var walkErr error
	var walking sync.WaitGroup
	defer walking.Wait()
	defer cancel()
	walking.Go(func() {
		defer close(walk)
		walkErr = walkStamps(ctx, p.tree, walk)
	})
	rows, err := x.stamps(ctx, p, seed)
	if err != nil {
		return nil, nil, err
	}
	done := 0
	for part := range walk {
		for _, f := range part {
			key := maphash.String(seed, f.path)
			if f.stamp == 0 || rows[key] != f.stamp {
				paths = append(paths, f.path)
			}
			if f.untimed {
				untimed = append(untimed, f.path)
			}
			delete(rows, key)
		}
		if done += len(part); progress != nil {
			progress(done)
		}
	}
	if walkErr != nil {
		return nil, nil, walkErr
	}
	if len(rows) > 0 { // rows whose files are gone
		const all = "SELECT " + filePath + " FROM files f JOIN folders o USING (fol) WHERE f.pid = ?"
		err = x.each(ctx, all, []any{p.pid}, func(scan scanner) error {
			var path string
			err := scan(&path)
			if _, gone := rows[maphash.String(seed, path)]; gone {
				paths = append(paths, path)
			}
			return err
		})
	}
	return paths, untimed, err
}

// walkStamps sends the files of the tree in slices of up to chunk files. It walks the top-level folders concurrently,
// because most files are in two of them: one contains the agents' files, the other the messages.
func walkStamps(ctx context.Context, t *tree.Tree, to chan<- []met) error {
	tops, err := t.List(".")
	if err != nil {
		return err
	}
	var walks errgroup.Group
	for _, top := range tops {
		name := top.Name()
		switch kind := format.Locate(name).Kind; {
		case top.IsDir() && !strings.HasPrefix(name, "."):
			walks.Go(func() error { return walkTop(ctx, t, name, to) })
		case !top.IsDir() && kind != format.KindIgnored:
			f := met{path: name}
			if st, err := t.Stat(name); err == nil {
				f.stamp = stampOf(kind, st, true)
			}
			if err := send(ctx, to, []met{f}); err != nil {
				return cmp.Or(walks.Wait(), err)
			}
		}
	}
	return walks.Wait()
}

func send(ctx context.Context, to chan<- []met, part []met) error {
	select {
	case to <- part:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// walkTop is like walkStamps, but for one top-level folder. It also sends the folders that cannot be listed.
func walkTop(ctx context.Context, t *tree.Tree, top string, to chan<- []met) error {
	var part []met
	err := t.Walk(ctx, top, func(path string, d fs.DirEntry) error {
		kind := format.Locate(path).Kind
		if kind == format.KindIgnored {
			return nil
		}
		f := met{path: path}
		if st, err := tree.StatOf(d); err == nil {
			f.stamp, f.untimed = stampOf(kind, st, true), kind.Mark() && st.Size == 0
		}
		if part = append(part, f); len(part) < chunk {
			return nil
		}
		full := part
		part = make([]met, 0, chunk)
		return send(ctx, to, full)
	})
	var unlisted *tree.UnlistedError
	if errors.As(err, &unlisted) {
		for _, f := range unlisted.Folders {
			part = append(part, met{path: f.Path})
		}
		err = nil
	}
	return cmp.Or(send(ctx, to, part), err)
}

// stamps returns the stamps of a project's rows, keyed by the hash of each path.
func (x *Index) stamps(ctx context.Context, p *project, seed maphash.Seed) (map[uint64]int64, error) {
	rows, dirs := map[uint64]int64{}, map[int64]string{}
	var fol, stamp int64
	err := x.each(ctx, "SELECT fol, CASE path WHEN '.' THEN '' ELSE path || '/' END FROM folders WHERE pid = ?", []any{p.pid},
		func(scan scanner) error {
			var dir string
			err := scan(&fol, &dir)
			dirs[fol] = dir
			return err
		})
	if err != nil {
		return nil, err
	}
	var name sql.RawBytes
	var path maphash.Hash
	path.SetSeed(seed)
	err = x.each(ctx, "SELECT fol, name, stamp FROM files WHERE pid = ?", []any{p.pid}, func(scan scanner) error {
		err := scan(&fol, &name, &stamp)
		path.Reset()
		path.WriteString(dirs[fol])
		path.Write(name)
		rows[path.Sum64()] = stamp
		return err
	})
	return rows, err
}

// chunks divides paths into batches. All files of a message are in the same batch, so its rows are written only once.
// Batches follow the order of ids, which is mostly chronological.
func chunks(paths []string) func(yield func([]string) bool) {
	keys := make([]keyed, len(paths))
	for i, p := range paths {
		keys[i] = keyed{locate(p).ID, p}
	}
	slices.SortFunc(keys, func(a, b keyed) int {
		return cmp.Or(strings.Compare(a.id, b.id), strings.Compare(a.path, b.path))
	})
	return func(yield func([]string) bool) {
		for from := 0; from < len(keys); {
			to := min(from+chunk, len(keys))
			for to < len(keys) && keys[to].id != "" && keys[to].id == keys[to-1].id {
				to++
			}
			part := make([]string, 0, to-from)
			for _, k := range keys[from:to] {
				part = append(part, k.path)
			}
			if !yield(part) {
				return
			}
			from = to
		}
	}
}

type keyed struct{ id, path string }
