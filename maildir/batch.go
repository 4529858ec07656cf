package maildir

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"
)

// One writer goroutine per project takes what has queued, plans and stages all of it, makes it durable together,
// renames, ingests in one transaction and answers everybody. A lone caller waits for nobody; under load the
// groups grow by themselves, because the next one gathers while this one syncs. The watcher's batches run between
// groups, so that nobody indexes half of one (Spec: 5; measured: LIMITS.md "Files").

const (
	maxGroup = 256 // operations
	maxTries = 8   // plannings of one operation that found the tree ahead of the index
)

// op is one operation on its way through the writer.
type op struct {
	Op
	ctx context.Context // of the caller; nil for the server's own
	// lock, if not empty, keeps two operations that decide on the same facts out of one group.
	lock string
	// plan runs in the writer's goroutine, when everything before it is in the index. It checks, and appends to
	// writes. No writes and no error is an operation that had nothing to do.
	plan   func(g *group) error
	writes []*write
	ids    []string // of an operation on several messages: the history has a line for each
	tries  int
	place  int // in the journal record
	err    error
	done   chan struct{} // closed with the answer; nil where nobody waits
}

func (o *op) finish() {
	if o.done != nil {
		close(o.done)
	}
}

// group is one group commit.
type group struct {
	p       *Project
	ctx     context.Context
	number  uint64
	now     time.Time
	ops     []*op
	locks   map[string]bool
	claimed map[string]bool       // paths that an operation of this group writes: two on one path are not in one group
	waiting map[string][]Delivery // unread deliveries of an agent not yet handed to a pop of this group
	pops    map[string]int        // pops of an agent in this group
	names   map[string]bool       // agents registered in this group, lower case
	staged  int
}

// do hands an operation to the writer and waits for its answer. When ctx ends first the operation may still
// happen, unless it was not planned yet.
func (p *Project) do(ctx context.Context, o *op) error {
	o.ctx, o.done = ctx, make(chan struct{})
	select {
	case p.queue <- o:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.stopped:
		return errStopped
	}
	select {
	case <-o.done:
	case <-p.stopped:
		select {
		case <-o.done:
		default:
			return errStopped
		}
	}
	if o.err != nil {
		return diskError(o.err)
	}
	return nil
}

var errStopped = errorf(ErrUnavailable, "the server is stopping; nothing was changed. Try again when it is back.")

// run is the writer. It returns when ctx has ended, everything accepted is answered, and the history is level.
func (p *Project) run(ctx context.Context) {
	work := context.WithoutCancel(ctx)
	recording, stopRecording := context.WithCancel(work) // the history ends last: it commits what the writer leaves
	var history sync.WaitGroup
	defer p.forgetCommitted()
	defer history.Wait()
	defer stopRecording()
	defer close(p.stopped)
	history.Go(func() {
		if err := p.history.Run(recording); err != nil {
			p.store.cfg.Log.Error("history stopped", "project", p.slug, "error", err)
		}
	})
	hourly := time.NewTicker(time.Hour)
	defer hourly.Stop()
	p.again = append(p.again, p.sweepClaims())
	p.poke()
	for {
		select {
		case <-hourly.C:
			p.scan()
			p.runGroup(work, append(p.again, p.sweepClaims()))
		case o := <-p.queue:
			p.runGroup(work, append(p.again, o))
		case <-p.wake:
			if len(p.again) > 0 {
				p.runGroup(work, p.again)
			}
		case <-ctx.Done():
			p.drain(work)
			return
		}
		p.ingestEdits(work)
		p.forgetCommitted()
	}
}

// drain answers what had queued when the end came.
func (p *Project) drain(ctx context.Context) {
	for {
		select {
		case o := <-p.queue:
			p.runGroup(ctx, append(p.again, o))
		default:
			if len(p.again) == 0 {
				return
			}
			p.runGroup(ctx, p.again)
		}
	}
}

// runGroup commits one group of the given operations and as many more as have queued.
func (p *Project) runGroup(ctx context.Context, ops []*op) {
	p.again = nil
	for len(ops) < maxGroup {
		select {
		case o := <-p.queue:
			ops = append(ops, o)
			continue
		default:
		}
		break
	}
	p.group++
	g := &group{p: p, ctx: ctx, number: p.group, now: p.store.cfg.Now().UTC(), locks: map[string]bool{}, claimed: map[string]bool{},
		waiting: map[string][]Delivery{}, pops: map[string]int{}, names: map[string]bool{}}
	for _, o := range ops {
		g.plan(o)
	}
	g.commit()
	p.tree.closeFolders()
	for _, o := range g.ops {
		o.finish()
	}
	if len(p.again) > 0 {
		p.poke()
	}
}

// plan decides what an operation writes and stages it. What cannot go into this group is planned again in the next.
func (g *group) plan(o *op) {
	switch {
	case o.ctx != nil && context.Cause(o.ctx) != nil:
		o.err = context.Cause(o.ctx)
		o.finish()
		return
	case o.lock != "" && g.locks[o.lock]:
		g.p.again = append(g.p.again, o)
		return
	}
	o.At, o.writes, o.Paths = g.now, nil, nil
	err := o.plan(g)
	if errors.Is(err, errStale) {
		g.retry(o, err)
		return
	}
	if err == nil && g.meets(o) {
		g.p.again = append(g.p.again, o)
		return
	}
	if err == nil {
		err = g.stage(o)
	}
	if err != nil || len(o.writes) == 0 {
		o.err = err
		o.finish()
		return
	}
	if o.lock != "" {
		g.locks[o.lock] = true
	}
	g.ops = append(g.ops, o)
}

// meets reports whether an operation of the group writes where o does; else o's paths are the group's too.
func (g *group) meets(o *op) bool {
	for _, w := range o.writes {
		if g.claimed[w.path] {
			return true
		}
	}
	for _, w := range o.writes {
		g.claimed[w.path] = true
	}
	return false
}

// errStale says that the tree is ahead of the index: the paths were ingested, so plan again.
var errStale = errors.New("the tree is ahead of the index")

// stale brings the index level with paths and asks for another planning.
func (g *group) stale(paths ...string) error {
	if err := g.p.ingest(g.ctx, paths, true); err != nil {
		return err
	}
	return errStale
}

func (g *group) retry(o *op, err error) {
	if o.tries++; o.tries >= maxTries {
		o.err = errorf(ErrUnavailable, "the files of this mail change faster than they can be read; try again")
		o.finish()
		return
	}
	g.p.again = append(g.p.again, o)
}

func (g *group) stage(o *op) error {
	for _, w := range o.writes {
		o.Paths = append(o.Paths, w.path)
		g.step("stage " + w.path)
		if err := g.p.tree.stage(w, stageName(g.number, g.staged)); err != nil {
			g.undo(o)
			return err
		}
		g.staged++
	}
	return nil
}

func (g *group) undo(o *op) {
	for _, w := range o.writes {
		if err := g.p.tree.undo(w); err != nil {
			g.p.store.cfg.Log.Error("a failed operation could not be taken back; it is at the next start", "project", g.p.slug, "path", w.path, "error", err)
			g.p.scan()
		}
	}
}

// commit makes the staged operations durable and visible, or fails them. Every operation left in g.ops
// afterwards has its answer.
func (g *group) commit() {
	if len(g.ops) == 0 {
		return
	}
	t, j := g.p.tree, g.p.journal
	g.step("journal")
	err := j.append(g.record())
	if err == nil {
		g.step("sync staged")
		err = t.syncAll(g.stagedPaths())
	}
	if err != nil {
		g.drop(g.ops)
		g.fail(err)
		return
	}
	g.publish()
	if len(g.ops) == 0 {
		j.done(g.number)
		return
	}
	g.step("sync renamed")
	if err := t.syncAll(g.paths()); err != nil {
		g.drop(g.ops)
		g.fail(err)
		return
	}
	g.step("ingest")
	changes, err := g.p.store.index.Ingest(g.ctx, g.p.slug, g.paths())
	if err != nil {
		g.p.store.cfg.Log.Error("index not writable", "project", g.p.slug, "error", err)
		g.drop(g.ops)
		g.fail(err)
		g.p.scan()
		return
	}
	g.p.noticed(changes)
	var ops []Op
	for _, o := range g.ops {
		for _, w := range o.writes {
			g.step("tidy " + w.path)
			t.tidy(w)
			if int64(len(w.data)) <= MaxSmall {
				g.p.own[w.path] = ownWrite{w.sum, g.number}
			}
		}
		ops = append(ops, o.each(o.ids)...)
	}
	number := g.number
	g.step("record")
	g.p.history.Record(ops, func() { g.p.committed(number) })
	g.step("answer")
}

// step tells a fault test where the writer is.
func (g *group) step(name string) {
	if f := g.p.store.cfg.Step; f != nil {
		f(name)
	}
}

// publish renames. An operation of which a file cannot be put into place is taken back as a whole; where the cause
// is a file that somebody made meanwhile, it is planned again.
func (g *group) publish() {
	kept := g.ops[:0]
	for _, o := range g.ops {
		err := g.publishOp(o)
		if err == nil {
			kept = append(kept, o)
			continue
		}
		g.drop([]*op{o})
		g.undo(o)
		if errors.Is(err, fs.ErrExist) {
			if serr := g.stale(o.Paths...); errors.Is(serr, errStale) {
				g.retry(o, serr)
				continue
			}
		}
		o.err = err
		o.finish()
	}
	g.ops = kept
}

func (g *group) publishOp(o *op) error {
	for _, w := range o.writes {
		g.step("rename " + w.path)
		if err := g.p.tree.publish(w); err != nil {
			return err
		}
	}
	return nil
}

// drop says in the journal, durably, that operations are to be taken back, before they are.
func (g *group) drop(ops []*op) {
	r := journalRecord{Group: g.number}
	for _, o := range ops {
		r.Drop = append(r.Drop, o.place)
	}
	if err := g.p.journal.append(r); err == nil {
		g.p.journal.file.Sync()
	}
}

// fail takes every operation of the group back.
func (g *group) fail(err error) {
	for _, o := range g.ops {
		g.undo(o)
		o.err = err
	}
	g.p.journal.done(g.number)
}

func (g *group) record() journalRecord {
	r := journalRecord{Group: g.number}
	for i, o := range g.ops {
		o.place = i
		jo := journalOp{Verb: o.Verb, Agent: o.Agent, ID: o.ID, IDs: o.ids, Summary: o.Summary, At: o.At}
		for _, w := range o.writes {
			jo.Files = append(jo.Files, journalEntry{w.path, w.action, w.sum, w.staged})
		}
		r.Ops = append(r.Ops, jo)
	}
	return r
}

func (g *group) paths() (all []string) {
	for _, o := range g.ops {
		all = append(all, o.Paths...)
	}
	return all
}

func (g *group) stagedPaths() []string {
	all := []string{journalFile}
	for _, o := range g.ops {
		for _, w := range o.writes {
			all = append(all, tmpDir+"/"+w.staged, pathDir(w.path)+"/.")
		}
	}
	return all
}

// put plans a file that must not exist yet.
func (o *op) put(path string, data []byte) {
	o.writes = append(o.writes, &write{path: path, data: data, sum: hexSum(data)})
}

// swap plans a file that may exist. What somebody else wrote there is in the history first. Spec: 5, I5.
func (g *group) swap(o *op, path string, data []byte) error {
	if err := g.p.preserve(g.ctx, path); err != nil {
		return err
	}
	o.writes = append(o.writes, &write{path: path, data: data, sum: hexSum(data), action: replace})
	return nil
}

// take plans the removal of a file; what somebody else wrote there is in the history first. Spec: 5, I5.
func (g *group) take(o *op, path string) error {
	if err := g.p.preserve(g.ctx, path); err != nil {
		return err
	}
	data, _, err := g.p.tree.Read(path, MaxSmall)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	o.writes = append(o.writes, &write{path: path, sum: hexSum(data), action: remove})
	return nil
}

// preserve returns once what somebody else wrote at path is in the history. What the server itself wrote there and
// is not committed yet needs no preserving: it is replaced by its own next version.
func (p *Project) preserve(ctx context.Context, path string) error {
	if _, err := p.tree.Stat(path); err != nil {
		return ignoreGone(err)
	}
	if own, ok := p.own[path]; ok && p.tree.holds(path, own.sum) {
		return nil
	}
	return p.history.Preserve(ctx, []string{path})
}

// ownWrite is the content that a group not yet committed gave a path.
type ownWrite struct {
	sum   string
	group uint64
}

// committed is called by the history, from a goroutine of its own or of one who flushes.
func (p *Project) committed(group uint64) {
	p.mu.Lock()
	p.settled = append(p.settled, group)
	p.mu.Unlock()
	p.poke()
}

func (p *Project) forgetCommitted() {
	p.mu.Lock()
	groups := p.settled
	p.settled = nil
	p.mu.Unlock()
	if len(groups) == 0 {
		return
	}
	p.journal.done(groups...)
	for path, own := range p.own {
		if slices.Contains(groups, own.group) {
			delete(p.own, path)
		}
	}
}
