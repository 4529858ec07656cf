package writer

import (
	"context"
	"time"

	"mailtree/maildir/tree"
)

// Run writes groups until ctx has ended and no accepted operation is queued or waiting to be planned again. After ctx
// has ended, it no longer calls functions that were passed to Aside, so that a long backlog of edits does not delay the
// end.
func (w *Writer) Run(ctx context.Context) {
	defer close(w.stopped)
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	for end := ctx.Done(); end != nil || !w.drained(); {
		select {
		case tx := <-w.queue:
			w.turn(ctx, tx)
		case <-w.wake:
			w.turn(ctx)
		case <-hourly.C:
			w.SweepStaging()
		case <-end:
			end = nil
		}
	}
}

// turn writes a group and then, unless ctx has ended, calls the functions passed to Aside. By then, the watcher has
// usually reported the group's files, so these functions can use the folders that the group has opened. If too many
// turns are in progress in the store, turn first waits until one of them ends.
func (w *Writer) turn(ctx context.Context, txs ...*Tx) {
	work := context.WithoutCancel(ctx) // the group is completed even if ctx ends
	w.Limits.groups <- struct{}{}
	defer func() { <-w.Limits.groups }()
	c := w.Tree.Changer(w.Limits.Folders)
	defer c.Close()
	w.writeGroup(work, c, append(w.takeLater(work), txs...))
	if ctx.Err() != nil {
		return
	}
	for _, f := range w.takeAside() {
		f(work, c)
	}
}

// drained reports whether no accepted operation is queued or waiting to be planned again.
func (w *Writer) drained() bool {
	queued, waiting := w.Backlog()
	return queued+waiting == 0
}

// Backlog returns how many operations are queued, and how many are waiting to be planned again.
func (w *Writer) Backlog() (queued, waiting int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue), len(w.again) + w.saves
}

// Later schedules an operation for the next group, and returns immediately.
func (w *Writer) Later(tx *Tx) {
	w.mu.Lock()
	w.again = append(w.again, tx)
	w.mu.Unlock()
	w.poke()
}

// Aside makes Run call f soon, between two groups. To read the state of files, f may use the Changer.
func (w *Writer) Aside(f func(ctx context.Context, c *tree.Changer)) {
	w.mu.Lock()
	w.asides = append(w.asides, f)
	w.mu.Unlock()
	w.poke()
}

func (w *Writer) takeAside() (all []func(context.Context, *tree.Changer)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, w.asides = w.asides, nil
	return all
}

// takeLater returns the operations to plan in the next group. Before that, it updates the index at the paths where
// earlier plans found it out of date.
func (w *Writer) takeLater(ctx context.Context) (all []*Tx) {
	w.mu.Lock()
	again := w.again
	w.again = nil
	w.mu.Unlock()
	for _, tx := range again {
		var err error
		if len(tx.behind) > 0 {
			err = w.Owner.Level(ctx, tx.behind)
			tx.behind = nil
		}
		if err != nil {
			tx.answer(err)
			continue
		}
		all = append(all, tx)
	}
	return all
}

// poke wakes Run, so that it processes w.again and w.asides.
func (w *Writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// writeGroup writes the given operations, along with other queued operations, as one group.
func (w *Writer) writeGroup(ctx context.Context, c *tree.Changer, txs []*Tx) {
	if len(txs) == 0 {
		return
	}
	defer w.endGroup()
	g := &Group{Ctx: ctx, Number: w.number.Add(1), w: w, c: c, facts: map[string]bool{}}
	for _, tx := range txs {
		g.plan(tx)
	}
	queued := true
	// Also count operations that write nothing. Otherwise, callers that immediately send another operation could keep
	// the group open forever.
	for n := len(txs); queued && !g.alone && n < MaxGroup; n++ {
		select {
		case tx := <-w.queue:
			g.plan(tx)
		default:
			queued = false
		}
	}
	if len(g.txs) > 0 {
		if err := g.write(); err != nil {
			g.fail(err)
		}
	}
}

// echoes records, for a few seconds, the state of each file that the server itself wrote and indexed. When the
// watcher reports such a file, no index query is needed. Only Run uses it.
type echoes struct {
	young, old map[string]echo
	turned     time.Time
}

// echo is a file's state, and the SHA-256, in hex, of the content that the server wrote to it.
type echo struct {
	stat tree.FileStat
	sum  string
}

const echoesLast = 10 * time.Second

func (e *echoes) add(path string, is echo, now time.Time) {
	if e.young == nil || now.Sub(e.turned) > echoesLast || now.Before(e.turned) {
		e.old, e.young, e.turned = e.young, map[string]echo{}, now
	}
	e.young[path] = is
}

// OwnSum returns the SHA-256, in hex, of the file that the writer wrote to path in the last few seconds, if the file's
// state right after the rename was st. It returns each SHA-256 only once. If the file still has that SHA-256, the
// watcher has reported the server's own write, not an edit. For any other file, OwnSum returns "". Only functions
// passed to Aside may call it.
func (w *Writer) OwnSum(path string, st tree.FileStat) string {
	for _, m := range []map[string]echo{w.echoes.young, w.echoes.old} {
		if own, ok := m[path]; ok {
			delete(m, path)
			if own.stat == st {
				return own.sum
			}
		}
	}
	return ""
}

// Own calls yield with the path of each file that OwnSum may recognize, until yield returns false. Only functions
// passed to Aside may call it.
func (w *Writer) Own(yield func(path string) bool) {
	for _, m := range []map[string]echo{w.echoes.young, w.echoes.old} {
		for path := range m {
			if !yield(path) {
				return
			}
		}
	}
}
