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
	w.poke() // what came before Run
	for end := ctx.Done(); end != nil || !w.drained(); {
		select {
		case tx := <-w.queue:
			w.writeGroup(work, tx)
		case <-w.wake:
			w.writeGroup(work, w.takeLater()...)
		case <-w.look:
		case <-hourly.C:
			w.writeGroup(work, w.SweepStaging())
		case <-end:
			end = nil
		}
		w.Owner.Between(work)
	}
}

// drained reports whether everything accepted has been answered.
func (w *Writer) drained() bool {
	queued, waiting := w.Backlog()
	return queued+waiting == 0
}

// writeGroup writes the operations, and what else is queued, as one group.
func (w *Writer) writeGroup(ctx context.Context, txs ...*Tx) {
	g := w.newGroup(ctx)
	for _, tx := range txs {
		g.plan(tx)
	}
	for queued := true; queued && len(g.txs) < MaxGroup; {
		select {
		case tx := <-w.queue:
			g.plan(tx)
		default:
			queued = false
		}
	}
	if len(g.txs) == 0 {
		g.close()
		return
	}
	if err := g.write(); err != nil {
		g.fail(err)
	}
}

// write makes the group's files durable, puts them into place, makes that durable, ingests them, tells
// the audit and answers. After an error the caller takes the group back.
func (g *Group) write() error {
	w := g.w
	g.step("journal")
	if err := w.journal.append(g.record()); err != nil {
		return err
	}
	g.step("sync staged")
	if err := w.Tree.Sync(g.stagedPaths()); err != nil {
		return err
	}
	g.publish()
	if len(g.txs) == 0 {
		g.forget()
		g.end()
		return nil
	}
	g.step("sync renamed")
	if err := w.Tree.Sync(g.paths()); err != nil {
		return err
	}
	found := g.findWritten()
	g.step("ingest")
	if err := w.Owner.Ingest(g.Ctx, g.paths(), found); err != nil {
		w.Log.Error("index not writable", "error", err)
		w.Owner.Edited(nil, true)
		return err
	}
	w.failing.tell(nil)
	g.keepOwn()
	w.fresh.add(found, time.Now())
	for _, tx := range g.txs {
		for _, f := range tx.Writes {
			g.step("tidy " + f.Path)
			g.c.Tidy(f)
		}
	}
	g.step("record")
	w.Owner.Record(g.told(), func() { g.forget(); w.committed(g.Number) })
	g.step("answer")
	g.end()
	return nil
}

// findWritten looks at the group's files before they are ingested, and returns those that are still
// as they were staged, by path. What is changed later is not what findWritten saw. A file that a
// fault of the machine keeps from being looked at counts as it was put there: the index takes no
// row for proven that it was given, and the watcher's report has it looked at again.
func (g *Group) findWritten() map[string]Written {
	found := map[string]Written{}
	for _, tx := range g.txs {
		for _, f := range tx.Writes {
			st, err := g.c.Stat(f.Path)
			fault := tree.FaultOf(err)
			switch {
			case f.Action == tree.Remove && (fault == tree.FaultGone || fault == tree.FaultMachine):
				found[f.Path] = Written{Gone: true}
			case f.Action == tree.Remove:
			case fault == tree.FaultMachine:
				found[f.Path] = Written{Data: f.Data, Stat: f.Stat}
			case err == nil && st.Inode == f.Stat.Inode && st.Size == f.Stat.Size && st.MTime == f.Stat.MTime:
				f.Stat = st
				found[f.Path] = Written{Data: f.Data, Stat: st}
			}
		}
	}
	return found
}

// told is the group as the audit is told of it.
func (g *Group) told() (ops []Op) {
	for _, tx := range g.txs {
		tx.Written = map[string]Written{}
		for _, f := range tx.Writes {
			tx.Written[f.Path] = Written{Data: f.Data, Stat: f.Stat, Gone: f.Action == tree.Remove}
		}
		ops = append(ops, tx.each(tx.IDs)...)
	}
	return ops
}
