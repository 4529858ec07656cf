package indexer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"mailtree/maildir/tree"
)

// Report says how a live index compares with one built from the trees.
type Report struct {
	Rows        int      // compared
	Differences []string // "- row of the live index", "+ row of the rebuilt one"; at most maxDifferences
}

const maxDifferences = 20

// Verify compares x, row for row, with an index built in memory from the trees (by slug), and x's
// full-text index with its messages. A change of the trees meanwhile shows as a difference.
// Invariant I2.
func Verify(ctx context.Context, x *Index, projects map[string]*tree.Tree) (*Report, error) {
	fresh, err := build(ctx, inMemory, projects, nil)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	defer fresh.Close()
	if n := len(fresh.unread); n > 0 {
		return nil, fmt.Errorf("verify: %d files could not be read now, so nothing can be compared: %s: %w", n, fresh.unread[0].Path,
			fresh.unread[0].Err)
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

// compare merges two dumps.
func (r *Report) compare(live, fresh iter.Seq2[line, error]) error {
	nextA, stopA := iter.Pull2(live)
	defer stopA()
	nextB, stopB := iter.Pull2(fresh)
	defer stopB()
	a, errA, okA := nextA()
	b, errB, okB := nextB()
	for okA || okB {
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		order := 0
		switch {
		case !okB:
			order = -1
		case !okA:
			order = 1
		default:
			order = a.compare(b)
		}
		if order < 0 || order == 0 && a.text != b.text {
			r.differ("- " + a.text)
		}
		if order > 0 || order == 0 && a.text != b.text {
			r.differ("+ " + b.text)
		}
		r.Rows++
		if order <= 0 {
			a, errA, okA = nextA()
		}
		if order >= 0 {
			b, errB, okB = nextB()
		}
	}
	return nil
}

func (l line) compare(m line) int {
	return cmp.Or(cmp.Compare(l.table, m.table), strings.Compare(l.project, m.project), strings.Compare(l.key, m.key))
}
