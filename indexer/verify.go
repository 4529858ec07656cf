package indexer

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"iter"

	"mailtree/maildir/tree"
)

// Report is the result of comparing a live index with an index built from the trees.
type Report struct {
	Rows        int      // number of rows in the live index
	Differences []string // "- row of the live index" or "+ row of the rebuilt index"; at most maxDifferences
}

const maxDifferences = 20

// Verify compares x, row by row, with an index that it builds in memory from the trees (keyed by slug). It also
// compares x's full-text index with x's messages. If the trees change while Verify is running, the changes may appear
// as differences. See invariant I2.
func Verify(ctx context.Context, x *Index, projects map[string]*tree.Tree) (*Report, error) {
	fresh, err := build(ctx, inMemory, projects, nil)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	defer fresh.Close()
	if n := len(fresh.unreadable); n > 0 {
		return nil, fmt.Errorf("cannot compare the index with the files: cannot read %d of the files, such as %s: %w", n,
			fresh.unreadable[0].Path, fresh.unreadable[0].Err)
	}
	r := &Report{}
	if err := r.compare(x.lines(ctx), fresh.lines(ctx)); err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	x.write.Lock()
	defer x.write.Unlock()
	if err := x.w.checkSearch(); err != nil {
		r.differ("- the full-text index: " + err.Error())
	}
	return r, nil
}

func (r *Report) differ(text string) {
	if len(r.Differences) < maxDifferences {
		r.Differences = append(r.Differences, text)
	}
}

// compare compares two dumps by the hashes of their lines. If any lines differ, it reads the dumps a second time to
// find them.
func (r *Report) compare(live, fresh iter.Seq2[string, error]) error {
	seed := maphash.MakeSeed()
	more := map[uint64]int{} // for each hash, the number of lines in the live index minus the number in the rebuilt index
	pass := func(lines iter.Seq2[string, error], see func(text string, hash uint64)) error {
		for text, err := range lines {
			if err != nil {
				return err
			}
			see(text, maphash.String(seed, text))
		}
		return nil
	}
	err := pass(live, func(_ string, hash uint64) {
		r.Rows++
		more[hash]++
	})
	if err != nil {
		return err
	}
	err = pass(fresh, func(_ string, hash uint64) {
		if more[hash]--; more[hash] == 0 {
			delete(more, hash)
		}
	})
	if err != nil || len(more) == 0 {
		return err
	}
	return cmp.Or(
		pass(live, func(text string, hash uint64) {
			if more[hash] > 0 {
				r.differ("- " + text)
			}
		}),
		pass(fresh, func(text string, hash uint64) {
			if more[hash] < 0 {
				r.differ("+ " + text)
			}
		}))
}
