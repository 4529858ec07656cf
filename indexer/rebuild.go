package indexer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// Buffer sizes for the full-text index, in bytes. They are set by writer.bufferSearch.
const (
	loadBuffer = 64 << 20
	liveBuffer = 1 << 20
)

// Rebuild builds the index at path from the trees alone. The trees are keyed by slug. Rebuild writes a new file next to
// path without a journal, syncs it, and renames it to path, so a crash leaves either the old index or the new one. No
// Index may be open at path. Unless progress is nil, Rebuild calls it with the number of a project's files processed so
// far. Files that could not be read because of a machine fault are missing from the new index. Reconcile adds them at
// the next start.
func Rebuild(ctx context.Context, path string, projects map[string]*tree.Tree, progress func(project string, done int)) error {
	tmp := path + ".new"
	if err := wipe(tmp); err != nil {
		return err
	}
	x, err := build(ctx, tmp, projects, progress)
	if err == nil {
		err = x.Close()
	}
	if err == nil {
		err = install(tmp, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("rebuild: %w", err), wipe(tmp))
	}
	return nil
}

// install makes the new database durable and replaces the old one with it.
func install(tmp, path string) error {
	if err := syncFile(tmp); err != nil {
		return err
	}
	if err := wipe(path); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncFile(filepath.Dir(path))
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// inMemory is the path of an index that is kept in memory until Close.
const inMemory = ":memory:"

// build loads a new database in one transaction.
func build(ctx context.Context, path string, projects map[string]*tree.Tree, progress func(string, int)) (*Index, error) {
	name := path
	if path != inMemory {
		name = dsn(path)
		if err := private(path); err != nil {
			return nil, err
		}
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	const fresh = true
	x, err := newIndex(ctx, Config{Path: path, Now: time.Now}, db, fresh)
	if err != nil {
		return nil, err
	}
	if err := x.fill(ctx, projects, progress); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

func (x *Index) fill(ctx context.Context, projects map[string]*tree.Tree, progress func(string, int)) error {
	tables, indexes := schemaParts()
	err := x.w.script("" + newPages + "PRAGMA journal_mode = off; PRAGMA synchronous = off; PRAGMA locking_mode = exclusive; " +
		"PRAGMA cache_size = -131072; PRAGMA temp_store = memory;" + tables)
	if err != nil {
		return err
	}
	if err := x.w.bufferSearch(loadBuffer); err != nil {
		return err
	}
	for _, slug := range slices.Sorted(maps.Keys(projects)) {
		if err := x.Attach(ctx, slug, projects[slug]); err != nil {
			return err
		}
	}
	return x.w.transaction(func() error {
		for _, p := range slices.Sorted(maps.Keys(projects)) {
			if err := x.load(ctx, x.projects[p], progress); err != nil {
				return err
			}
		}
		if err := x.w.startChanges(x.cfg.Now()); err != nil {
			return err
		}
		if err := x.w.bufferSearch(liveBuffer); err != nil {
			return err
		}
		return x.w.script(indexes + fmt.Sprintf("PRAGMA user_version = %d;", schemaVersion))
	})
}

// loaders is the number of chunks that load reads and parses concurrently while it writes an earlier chunk. If the
// files are not in the page cache yet, several concurrent reads take no longer than a single read.
const loaders = 4

// load inserts the rows of a project. Other goroutines read and parse the next chunks while load writes.
func (x *Index) load(ctx context.Context, p *project, progress func(string, int)) error {
	defer p.tree.Hold()()
	var paths []string
	err := p.tree.Walk(ctx, "", func(path string, _ fs.DirEntry) error {
		if format.Locate(path).Kind != format.KindIgnored {
			paths = append(paths, path)
		}
		return nil
	})
	var unlisted *tree.UnlistedError
	switch {
	case errors.As(err, &unlisted):
		x.unreadable = append(x.unreadable, unlisted.Folders...)
	case err != nil:
		return err
	}
	type read struct {
		b   *batch
		err error
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := make(chan chan read, loaders-1) // results, in the order of the chunks
	reading.Go(func() {
		defer close(next)
		for part := range chunks(paths) {
			result := make(chan read, 1)
			select {
			case next <- result:
			case <-ctx.Done():
				return
			}
			reading.Go(func() {
				b := x.batch(p)
				b.new = true
				result <- read{b, b.ingestNew(ctx, part)}
			})
		}
	})
	done := 0
	for result := range next {
		r := <-result
		if r.err == nil {
			r.err = r.b.apply()
		}
		if r.err != nil {
			return r.err
		}
		x.unreadable = append(x.unreadable, r.b.left()...)
		if done += len(r.b.seen); progress != nil {
			progress(p.slug, done)
		}
	}
	return ctx.Err()
}

// ingestNew examines files that a walk has just found.
func (b *batch) ingestNew(ctx context.Context, paths []string) error {
	for _, p := range paths {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.look(p)
	}
	return nil
}
