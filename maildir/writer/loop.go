package writer

import (
	"context"
	"time"

	"mailtree/maildir/tree"
)

// Run writes one group after the other until ctx has ended and everything accepted is answered.
func (w *Writer) Run(ctx context.Context) {
	defer close(w.stopped)
	work := context.WithoutCancel(ctx) // goes on when the server is told to stop
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	for end := ctx.Done(); end != nil || !w.drained(); {
		select {
		case tx := <-w.queue:
			w.turn(work, tx)
		case <-w.wake:
			w.turn(work)
		case <-hourly.C:
			w.SweepStaging()
		case <-end:
			end = nil
		}
	}
}

// turn writes a group, and calls what Aside was given. The folders that the group had open serve those too:
// the watcher has mostly told of the group's files by then. turn waits until there are not too many turns under
// way in the store.
func (w *Writer) turn(ctx context.Context, txs ...*Tx) {
	w.Limits.groups <- struct{}{}
	defer func() { <-w.Limits.groups }()
	c := w.Tree.Changer(w.Limits.Folders)
	defer c.Close()
	w.writeGroup(ctx, c, append(w.takeLater(ctx), txs...))
	for _, f := range w.takeAside() {
		f(ctx, c)
	}
}

// drained reports whether everything accepted has been answered.
func (w *Writer) drained() bool {
	queued, waiting := w.Backlog()
	return queued+waiting == 0
}

// Backlog is how many operations nobody has looked at yet, and how many are planned once more.
func (w *Writer) Backlog() (queued, waiting int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue), len(w.again) + w.saves
}

// Later has an operation planned with the next group, for which nobody need wait.
func (w *Writer) Later(tx *Tx) {
	w.mu.Lock()
	w.again = append(w.again, tx)
	w.mu.Unlock()
	w.poke()
}

// Aside has f called by Run between two groups, soon. It may look at files with the changer.
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

// takeLater returns what is to be planned in the next group, once the index is level with what earlier
// plans found it behind at.
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

// poke has Run look at what waits in again and asides.
func (w *Writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// writeGroup writes the operations as one group, with what else is queued.
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
	for n := len(txs); queued && !g.alone && n < MaxGroup; n++ { // not only what writes: callers come back at once
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

// echoes knows how the files were found that the server wrote itself and has indexed since, so that the
// watcher's word of them needs no look into the index. It forgets after some seconds. Run alone uses it.
type echoes struct {
	young, old map[string]echo
	turned     time.Time
}

// echo is how a file was found, and the SHA-256 of what the server had put there, in hex.
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

// OwnSum returns, once, the SHA-256 in hex of what the writer has put at path some seconds ago, where st is how
// the file was found when it was ingested: if the file still has it, what the watcher says of it is no edit. ""
// for any other file. It is for what Aside calls.
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
