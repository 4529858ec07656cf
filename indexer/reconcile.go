package indexer

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"mailtree/maildir"
	"mailtree/maildir/format"
	"mailtree/maildir/tree"
)

// chunk is how many paths one transaction of Reconcile and Rebuild covers: enough to make the
// commit cheap, few enough that a send waits only some tenths of a second.
const chunk = 1024

// Reconcile compares the whole tree with the rows: see maildir.Index. Other writers get the lock
// between chunks.
func (x *Index) Reconcile(ctx context.Context, slug string, progress func(done int)) (maildir.Ingested, error) {
	var all maildir.Ingested
	p := x.project(slug)
	if p == nil {
		return all, fmt.Errorf("reconcile: project %q is not attached", slug)
	}
	defer p.tree.Hold()()
	paths, err := x.differing(ctx, p, progress)
	if err != nil {
		return all, fmt.Errorf("reconcile: %w", err)
	}
	for part := range chunks(paths) {
		one, err := x.Ingest(ctx, slug, part)
		if err != nil {
			return all, err
		}
		all.Changes, all.Unread = append(all.Changes, one.Changes...), append(all.Unread, one.Unread...)
	}
	return all, nil
}

// differing keeps a hash of each row's stat, 0 where the stat proves nothing, and sets this bit
// once it meets the file. A million messages have three million rows, so it keeps neither paths nor
// stats.
const metBit = 1

// Differing returns the paths at which tree and rows may differ: see maildir.Index.
func (x *Index) Differing(ctx context.Context, slug string) ([]string, error) {
	p := x.project(slug)
	if p == nil {
		return nil, fmt.Errorf("compare: project %q is not attached", slug)
	}
	return x.differing(ctx, p, nil)
}

// met is a file that a walk found: its path, and the hash of its stat, 0 where it cannot be had.
type met struct {
	path string
	sum  uint64
}

// walkAhead is how many chunks of files a walk may be ahead of the rows: some 30 MB of paths.
const walkAhead = 256

// differing lists the files whose stamps differ from their rows, and the rows whose files are gone.
// It reads the rows while a goroutine walks the tree.
func (x *Index) differing(ctx context.Context, p *project, progress func(int)) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	seed := maphash.MakeSeed()
	walk := make(chan []met, walkAhead)
	var walkErr error
	var walking sync.WaitGroup
	defer walking.Wait()
	defer cancel()
	walking.Go(func() {
		defer close(walk)
		walkErr = walkStamps(ctx, p.tree, seed, walk)
	})
	rows, err := x.stamps(ctx, p, seed)
	if err != nil {
		return nil, err
	}
	var paths []string
	done, known := 0, 0
	for part := range walk {
		for _, f := range part {
			key := maphash.String(seed, f.path)
			sum, ok := rows[key]
			if ok {
				known++
				rows[key] = sum | metBit
			}
			if !ok || sum == 0 || sum != f.sum {
				paths = append(paths, f.path)
			}
		}
		if done += len(part); progress != nil {
			progress(done)
		}
	}
	err = walkErr
	var unlisted *tree.UnlistedError
	if errors.As(err, &unlisted) && unlisted.Folders[0].Path != "." {
		for _, f := range unlisted.Folders {
			paths = append(paths, f.Path)
		}
		err = nil
	}
	if err != nil {
		return nil, err
	}
	if known < len(rows) {
		const all = "SELECT " + filePath + " FROM files f JOIN folders o USING (fol) WHERE f.pid = ?"
		err = x.each(ctx, all, []any{p.pid}, func(scan func(...any) error) error {
			var path string
			err := scan(&path)
			if rows[maphash.String(seed, path)]&metBit == 0 {
				paths = append(paths, path)
			}
			return err
		})
	}
	return paths, err
}

// walkStamps sends what lies in the tree, in parts of at most chunk files.
func walkStamps(ctx context.Context, t *tree.Tree, seed maphash.Seed, to chan<- []met) error {
	var part []met
	send := func() error {
		select {
		case to <- part:
			part = make([]met, 0, chunk)
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := t.Walk(ctx, "", func(path string, d fs.DirEntry) error {
		if format.Locate(path).Kind == format.KindIgnored {
			return nil
		}
		f := met{path: path}
		if st, err := tree.StatOf(d); err == nil {
			f.sum = statSum(seed, st)
		}
		if part = append(part, f); len(part) < chunk {
			return nil
		}
		return send()
	})
	return cmp.Or(err, send())
}

// stamps reads the rows of a project: hashes of their stats by hashes of their paths.
func (x *Index) stamps(ctx context.Context, p *project, seed maphash.Seed) (map[uint64]uint64, error) {
	rows := map[uint64]uint64{}
	var f file
	var inode int64
	var path sql.RawBytes
	const all = "SELECT " + filePath + ", f.kind, f.size, f.mtime, f.ctime, f.inode, f.read_at " +
		"FROM files f JOIN folders o USING (fol) WHERE f.pid = ?"
	err := x.each(ctx, all, []any{p.pid},
		func(scan func(...any) error) error {
			err := scan(&path, &f.kind, &f.stat.Size, &f.stat.MTime, &f.stat.CTime, &inode, &f.readAt)
			f.stat.Inode = uint64(inode)
			sum := uint64(0)
			if f.level(f.stat) {
				sum = statSum(seed, f.stat)
			}
			rows[maphash.Bytes(seed, path)] = sum
			return err
		})
	return rows, err
}

func statSum(seed maphash.Seed, st tree.FileStat) uint64 {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[0:], uint64(st.Size))
	binary.LittleEndian.PutUint64(b[8:], uint64(st.MTime))
	binary.LittleEndian.PutUint64(b[16:], uint64(st.CTime))
	binary.LittleEndian.PutUint64(b[24:], st.Inode)
	return (maphash.Bytes(seed, b[:]) | 2) &^ metBit
}

// chunks cuts paths into batches. All files of one message are in one batch, so that it is written
// once; batches follow the order of ids, which is mostly that of time.
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
