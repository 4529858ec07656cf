package writer

import (
	"context"
	"sync"
	"time"

	"mailtree/maildir/tree"
)

// Run writes until ctx has ended and everything accepted is answered.
func (w *Writer) Run(ctx context.Context) {
	work := context.WithoutCancel(ctx)
	var stages sync.WaitGroup
	a := &assembly{w: w, ctx: work, ready: make(chan struct{}, 1)}
	stages.Go(a.place)
	stages.Go(func() { w.ingestPlaced(work) })
	a.run(ctx)
	stages.Wait()
	close(w.stopped)
}

// assembly is where a group gathers until the second stage takes it.
type assembly struct {
	w     *Writer
	ctx   context.Context // of the work, which goes on when the server is told to stop
	ready chan struct{}   // rings when there is something to take; closed when nothing comes any more

	mu sync.Mutex
	g  *Group // nil: nothing yet
}

// run is the first stage: it plans and stages what comes until ctx has ended and everything
// accepted is answered.
func (a *assembly) run(ctx context.Context) {
	defer close(a.ready)
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	a.w.poke() // what came before Run
	end, ended := ctx.Done(), false
	for !ended || !a.drained() {
		queue := a.w.queue
		if a.gathered() >= MaxGroup {
			queue = nil
		}
		select {
		case tx := <-queue:
			a.plan(tx)
		case <-a.w.wake:
			a.plan(a.w.takeLater()...)
		case <-hourly.C:
			a.plan(a.w.SweepStaging())
		case <-end:
			end, ended = nil, true
		}
	}
}

// plan adds operations to the group.
func (a *assembly) plan(txs ...*Tx) {
	for _, tx := range txs {
		a.mu.Lock()
		if a.g == nil {
			a.g = a.w.newGroup(a.ctx)
		}
		a.g.plan(tx)
		if len(a.g.txs) > 0 {
			ring(a.ready)
		} else { // nothing is to be kept from one moment to another
			a.g.close()
			a.g = nil
		}
		a.mu.Unlock()
	}
}

// takeGroup takes the group as it is; nil when nothing is staged. Without wait it also returns nil
// while an operation is being planned, which may take its time: others wait for what was renamed.
func (a *assembly) takeGroup(wait bool) *Group {
	if wait {
		a.mu.Lock()
	} else if !a.mu.TryLock() {
		return nil
	}
	defer a.mu.Unlock()
	g := a.g
	a.g = nil
	if g != nil {
		a.w.poke() // there may be room again
	}
	return g
}

func (a *assembly) gathered() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.g == nil {
		return 0
	}
	return len(a.g.txs)
}

// drained reports whether everything accepted has been answered.
func (a *assembly) drained() bool {
	queued, waiting := a.w.Backlog()
	return queued+waiting == 0 && a.w.flight.idle()
}

// place is the second stage: it makes staged groups durable and puts their files into place. One
// sync serves two groups: it makes durable what one has staged, and what the one before has
// renamed.
func (a *assembly) place() {
	defer close(a.w.placed)
	var before *Group // renamed, not known to be durable
	for {
		g := a.takeGroup(before == nil)
		if g == nil && before == nil {
			if _, more := <-a.ready; !more {
				return
			}
			continue
		}
		if g != nil && !g.announce() {
			continue
		}
		err := a.w.sync(before, g)
		if before != nil {
			before.unsynced = err
			a.w.placed <- before
		}
		before = nil
		if g != nil && g.putInPlace(err) {
			before = g
		}
	}
}

// announce writes the group into the journal; false when that failed and the group has ended.
func (g *Group) announce() bool {
	g.step("journal")
	if err := g.w.journal.append(g.record()); err != nil {
		g.fail(err)
		return false
	}
	g.step("sync staged")
	return true
}

// sync makes durable what before has renamed and g has staged; either may be nil.
func (w *Writer) sync(before, g *Group) error {
	var paths []string
	if before != nil {
		before.step("sync renamed")
		paths = before.paths()
	}
	if g != nil {
		paths = append(paths, g.stagedPaths()...)
	}
	err := w.Tree.Sync(paths)
	if err != nil {
		w.failing.noteFailure(err)
	}
	return err
}

// putInPlace renames the files of a group whose staging was synced with err; false when that failed
// and the group has ended.
func (g *Group) putInPlace(err error) bool {
	if err == nil {
		err = g.w.failing.since(g.mark)
	}
	if err != nil {
		g.fail(err)
		return false
	}
	g.w.gate.enterGroup()
	g.publish()
	return true
}

// ingestPlaced is the third stage: it ingests groups that are in place, tells the audit and
// answers; between them it lets the owner ingest what others changed.
func (w *Writer) ingestPlaced(ctx context.Context) {
	for more := true; more; {
		var g *Group
		select {
		case g, more = <-w.placed:
			if more {
				g.ingest()
			}
		case <-w.look:
		}
		w.Owner.Between(ctx)
	}
}

// Alone runs f while no group is in place that is not in the index, and none comes into place. Only
// Owner.Between may call it.
func (w *Writer) Alone(f func()) {
	for w.gate.close() > 0 {
		(<-w.placed).ingest()
	}
	defer w.gate.open()
	f()
}

// ingest ingests the group, tells the audit and answers; where it is not durable or cannot be
// ingested, it is taken back.
func (g *Group) ingest() {
	w := g.w
	defer w.gate.leaveGroup()
	if len(g.txs) == 0 {
		g.forget()
		g.end()
		return
	}
	if g.unsynced != nil {
		g.fail(g.unsynced)
		return
	}
	found := g.findWritten()
	g.step("ingest")
	if err := w.Owner.Ingest(g.Ctx, g.paths(), found); err != nil {
		w.Log.Error("index not writable", "error", err)
		g.fail(err)
		w.Owner.Edited(nil, true)
		return
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
