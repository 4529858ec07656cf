package maildir

import (
	"context"
	"sync"
	"time"

	"mailtree/maildir/tree"
)

// run is the writer. It returns when ctx has ended, everything accepted is answered, and the history is level.
func (p *Project) run(ctx context.Context) {
	work := context.WithoutCancel(ctx)
	recording, stopRecording := context.WithCancel(work) // the history ends last: it commits what the writer leaves
	var beside, stages sync.WaitGroup
	beside.Go(func() {
		if err := p.history.Run(recording); err != nil {
			p.store.cfg.Log.Error("history stopped", "project", p.slug, "error", err)
		}
	})
	a := &assembly{p: p, ctx: work, ready: make(chan struct{}, 1)}
	placed := make(chan *group)
	stages.Go(func() { a.place(placed) })
	stages.Go(func() { p.runIngest(work, placed) })
	beside.Go(func() { p.compare(ctx) })
	p.later(p.sweepClaims())
	p.poke()
	a.run(ctx)
	stages.Wait()
	close(p.stopped)
	stopRecording()
	beside.Wait()
}

// assembly is where a group gathers until the second stage takes it.
type assembly struct {
	p     *Project
	ctx   context.Context // of the work, which goes on when the server is told to stop
	ready chan struct{}   // rings when there is something to take; closed when nothing comes any more

	mu sync.Mutex
	g  *group // nil: nothing yet
}

// run is the first stage: it plans and stages what comes until ctx has ended and everything accepted is answered.
func (a *assembly) run(ctx context.Context) {
	defer close(a.ready)
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	end, ended := ctx.Done(), false
	for !ended || !a.drained() {
		queue := a.p.queue
		if a.gathered() >= maxGroup {
			queue = nil
		}
		select {
		case o := <-queue:
			a.plan(o)
		case <-a.p.wake:
			a.plan(a.p.takeLater()...)
		case <-hourly.C:
			a.p.scan()
			a.plan(a.p.sweepClaims(), a.p.sweepStaging())
		case <-end:
			end, ended = nil, true
		}
	}
}

// plan adds operations to the group.
func (a *assembly) plan(ops ...*op) {
	for _, o := range ops {
		a.mu.Lock()
		if a.g == nil {
			a.g = a.p.newGroup(a.ctx)
		}
		a.g.plan(o)
		if len(a.g.ops) > 0 {
			ring(a.ready)
		} else { // nothing is to be kept from one moment to another
			a.g.close()
			a.g = nil
		}
		a.mu.Unlock()
	}
}

// takeGroup takes the group as it is; nil when nothing is staged. Without wait also while an operation is being planned, which may
// takeGroup its time: others wait for what was renamed.
func (a *assembly) takeGroup(wait bool) *group {
	if wait {
		a.mu.Lock()
	} else if !a.mu.TryLock() {
		return nil
	}
	defer a.mu.Unlock()
	g := a.g
	a.g = nil
	if g != nil {
		a.p.poke() // there may be room again
	}
	return g
}

func (a *assembly) gathered() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.g == nil {
		return 0
	}
	return len(a.g.ops)
}

// drained reports whether everything accepted has been answered.
func (a *assembly) drained() bool {
	a.p.mu.Lock()
	later := len(a.p.again)
	a.p.mu.Unlock()
	return later == 0 && len(a.p.queue) == 0 && a.p.flight.idle()
}

// later has an operation planned when a group has ended.
func (p *Project) later(o *op) {
	p.mu.Lock()
	p.again = append(p.again, o)
	p.mu.Unlock()
	if p.flight.idle() { // what it waited for has ended meanwhile
		p.poke()
	}
}

func (p *Project) takeLater() []*op {
	p.mu.Lock()
	defer p.mu.Unlock()
	ops := p.again
	p.again = nil
	return ops
}

// place is the second stage: it makes staged groups durable and puts their files into place. One sync serves two groups:
// it makes durable what one has staged, and what the one before has renamed.
func (a *assembly) place(placed chan<- *group) {
	defer close(placed)
	var before *group // renamed, not known to be durable
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
		err := a.p.sync(before, g)
		if before != nil {
			before.unsynced = err
			placed <- before
		}
		before = nil
		if g != nil && g.putInPlace(err) {
			before = g
		}
	}
}

// announce writes the group into the journal; false when that failed and the group has ended.
func (g *group) announce() bool {
	g.step("journal")
	if err := g.p.journal.append(g.record()); err != nil {
		g.fail(err)
		return false
	}
	g.step("sync staged")
	return true
}

// sync makes durable what before has renamed and g has staged; either may be nil.
func (p *Project) sync(before, g *group) error {
	var paths []string
	if before != nil {
		before.step("sync renamed")
		paths = before.paths()
	}
	if g != nil {
		paths = append(paths, g.stagedPaths()...)
	}
	err := p.tree.Sync(paths)
	if err != nil {
		p.failing.noteFailure(err)
	}
	return err
}

// putInPlace renames the files of a group whose staging was synced with err; false when that failed and the group has ended.
func (g *group) putInPlace(err error) bool {
	if err == nil {
		err = g.p.failing.since(g.mark)
	}
	if err != nil {
		g.fail(err)
		return false
	}
	g.p.gate.enterGroup()
	g.publish()
	return true
}

// runIngest is the third stage: it ingests groups that are in place, and between them what others changed, tells the
// history and answers.
func (p *Project) runIngest(ctx context.Context, placed <-chan *group) {
	for {
		select {
		case g, ok := <-placed:
			if !ok {
				p.ingestEdits(ctx, placed)
				return
			}
			g.ingestGroup()
		case <-p.look:
		}
		p.ingestEdits(ctx, placed)
	}
}

// ingestGroup ingests the group, tells the history and answers; where it is not durable or cannot be ingested, it is taken back.
func (g *group) ingestGroup() {
	defer g.p.gate.leaveGroup()
	if len(g.ops) == 0 {
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
	in, err := g.p.store.index.IngestWritten(g.ctx, g.p.slug, g.paths(), found)
	if err != nil {
		g.p.store.cfg.Log.Error("index not writable", "project", g.p.slug, "error", err)
		g.fail(err)
		g.p.scan()
		return
	}
	g.p.failing.tell(nil)
	g.p.noteUnread(g.paths(), in.Unread)
	g.p.noticed(in.Changes)
	g.keepOwn()
	g.p.fresh.add(found, time.Now())
	for _, o := range g.ops {
		for _, w := range o.writes {
			g.step("tidy " + w.Path)
			g.c.Tidy(w)
		}
	}
	g.step("record")
	g.p.history.Record(g.told(), func() { g.forget(); g.p.committed(g.number) })
	g.step("answer")
	g.end()
}

// findWritten looks at the group's files before they are ingested: those that are still as they were staged, by path. What is
// changed later than that is not what findWritten saw. A file that a fault of the machine keeps from being looked at counts as it
// was put there: the index takes no row for proven that it was given, and the watcher's report has it looked at again.
func (g *group) findWritten() map[string]Written {
	found := map[string]Written{}
	for _, o := range g.ops {
		for _, w := range o.writes {
			st, err := g.c.Stat(w.Path)
			fault := tree.FaultOf(err)
			switch {
			case w.Action == tree.Remove && (fault == tree.FaultGone || fault == tree.FaultMachine):
				found[w.Path] = Written{Gone: true}
			case w.Action == tree.Remove:
			case fault == tree.FaultMachine:
				found[w.Path] = Written{Data: w.Data, Stat: w.Stat}
			case err == nil && st.Inode == w.Stat.Inode && st.Size == w.Stat.Size && st.MTime == w.Stat.MTime:
				w.Stat = st
				found[w.Path] = Written{Data: w.Data, Stat: st}
			}
		}
	}
	return found
}

// told is the group as the history is told of it.
func (g *group) told() (ops []Op) {
	for _, o := range g.ops {
		o.Written = map[string]Written{}
		for _, w := range o.writes {
			o.Written[w.Path] = Written{Data: w.Data, Stat: w.Stat, Gone: w.Action == tree.Remove}
		}
		ops = append(ops, o.each(o.ids)...)
	}
	return ops
}
