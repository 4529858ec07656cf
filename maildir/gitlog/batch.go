package gitlog

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"mailtree/maildir/writer"
)

// batch is a list of operations or a list of edits. The branch moves only once for the whole batch.
type batch struct {
	ops   []operation
	edits []string
	force bool // commit edits even if a .gitignore matches them
}

// operation is a writer.Op together with the newest commit that the Log knew of when the Op was recorded.
type operation struct {
	writer.Op
	base hash
}

// commitOps commits the operations at the front of the queue, if there are any. The caller must hold l.turn.
func (l *Log) commitOps(ctx context.Context) error {
	l.mu.Lock()
	records := l.nextRecords()
	l.mu.Unlock()
	if len(records) == 0 {
		return nil
	}
	var b batch
	for _, r := range records {
		for _, op := range r.ops {
			b.ops = append(b.ops, operation{op, r.base})
		}
	}
	switch err := l.commitBatch(ctx, b); {
	case errors.Is(err, errMade): // the commits may not be durable yet, so keep the operations but do not commit them again
		l.mu.Lock()
		defer l.mu.Unlock()
		for i := range records {
			l.records[i].ops = slices.Clone(records[i].ops)
			for j := range records[i].ops {
				l.records[i].ops[j].Recovered = true
			}
		}
		return err
	case err != nil:
		return err
	}
	for _, op := range b.ops {
		if op.Merges.Commit != "" && !op.Merges.More { // the merge has been committed or postponed
			l.mem.postponed = ""
		}
	}
	for _, r := range records {
		if r.done != nil {
			r.done()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pop(len(records), time.Now())
	return nil
}

// commitEdits commits the edits recorded so far, up to mostEdits paths, in a single commit. If the edits belong to an
// import, a call to StopBy cancels the commit. The caller must hold l.turn.
func (l *Log) commitEdits(ctx context.Context) error {
	if l.isImporting() {
		both, end := within(ctx, l.mayImport)
		defer end()
		ctx = both
	}
	l.mu.Lock()
	if len(l.edits) == 0 {
		l.mu.Unlock()
		return nil
	}
	paths := l.startEdits(time.Now())
	l.mu.Unlock()
	err := l.commitBatch(ctx, batch{edits: paths})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endEdits(err == nil, time.Now())
	if err == nil {
		l.progress(len(paths))
	}
	return err
}

// commitAllEdits commits all edits recorded before the call. The caller must hold l.turn.
func (l *Log) commitAllEdits(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for left := len(l.edits); left > 0 || l.cut; left -= mostEdits {
		l.mu.Unlock()
		err := l.commitEdits(ctx)
		l.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// commitBatch makes the commits for a batch and stores the result for State.
func (l *Log) commitBatch(ctx context.Context, b batch) error {
	start := time.Now()
	err := l.commit(ctx, b)
	l.mu.Lock()
	before := l.trouble
	l.trouble = err
	if err == nil {
		l.succeeded(time.Now(), time.Since(start), l.cfg.Delay)
	} else {
		l.failed(time.Now())
	}
	pending := l.pending()
	l.mu.Unlock()
	l.logChange(before, err, pending)
	return err
}

// logChange logs when the history starts or stops failing, and when the reason for the failure changes.
func (l *Log) logChange(before, after error, pending int) {
	text := func(err error) string {
		if err == nil {
			return ""
		}
		_, reason := modeOf(err)
		return reason
	}
	switch was, is := text(before), text(after); {
	case was == is:
	case after == nil:
		l.cfg.Log.Info("mail is being committed again")
	case errors.Is(after, context.Canceled), errors.Is(after, context.DeadlineExceeded):
	default:
		l.cfg.Log.Warn("mail is not being committed", "reason", is, "pending", pending)
	}
}

// tries is the maximum number of attempts to make a commit while the branch keeps moving. The first optimisticTries
// attempts take index.lock only when everything is ready. Later attempts take it before they build the commit.
const (
	tries           = 10
	optimisticTries = 2
)

// commit makes the commits for a batch.
func (l *Log) commit(ctx context.Context, b batch) (err error) {
	for try := range tries {
		err = l.attempt(ctx, b, try >= l.optimistic)
		if !errors.Is(err, errMoved) || errors.Is(err, errMade) {
			return err
		}
	}
	return &hold{mode: "waiting", cause: err, reason: "The mail branch keeps moving while the server " +
		"tries to commit. The server will retry."}
}

// attempt builds the commits on top of the current HEAD, builds the index for them, and publishes the commits and the
// index. If firm is set, it takes index.lock first.
func (l *Log) attempt(ctx context.Context, b batch, firm bool) error {
	ctx, cancel := context.WithTimeout(ctx, lookLimit) // if a command times out, a later attempt repeats it
	defer cancel()
	repo, err := l.openRepaired(ctx)
	if err != nil {
		return err
	}
	defer repo.Close()
	p := &publication{repo: repo, step: l.step}
	if err = repo.busy(); err == nil {
		p.at, err = l.branch(repo)
		p.commit = p.at.commit
	}
	if err == nil && !l.embedded {
		err = repo.makeOwn() // create the folder now, because two goroutines are about to use it
	}
	switch {
	case err != nil:
		return err
	case firm:
		err = p.reserve(ctx)
	default:
		err = repo.rest(ctx)
	}
	var made bool
	if err == nil {
		made, err = l.publish(ctx, p, b)
	}
	if !made {
		p.abandon()
	}
	return err
}

// publish builds the commits for a batch on the current HEAD, moves the branch, and replaces the index. The result made
// reports whether the index, and perhaps the branch, has moved. If edits change nothing, there is no commit, but an
// operation is always committed. Replacing the index also fixes a missing index, and an index that a git command has
// overwritten with an older version. With the embedded engine, publish removes any index that exists.
func (l *Log) publish(ctx context.Context, p *publication, b batch) (made bool, err error) {
	if p.at, err = l.branch(p.repo); err != nil {
		return false, err
	}
	if p.base, err = p.repo.checkIndex(); err != nil { // check the index first, because nothing can be committed if it is damaged
		return false, err
	}
	p.commit = p.at.commit
	restore, err := l.undone(p)
	if err != nil {
		return false, err
	}
	objects := p.repo.newObjects(p.commit)
	defer objects.Discard()
	plan, err := l.build(p.repo, p.at, b, objects)
	if err != nil {
		return false, err
	}
	defer plan.close()
	if len(b.ops) == 0 && !b.force {
		l.leaveOutBusy(plan)
	}
	if err := plan.findIncompleteMerge(b.ops); err != nil {
		return false, err
	}
	p.step("built")
	parts, err := plan.divide(b)
	if err != nil {
		return false, err
	}
	if len(parts) == 0 && len(restore) == 0 && !l.isMisplaced(p.base, p.commit) {
		l.settle(state{p.base, p.commit}, keepTime/3)
		l.putBack(plan)
		return false, nil
	}
	if p.commit, err = plan.forward(b); err != nil {
		return false, err
	}
	if p.commit != p.at.commit {
		parts, p.mark.Log = nil, "merge: fast-forward"
	}
	index, err := l.makeObjects(p, plan, parts, restore, objects)
	if err != nil {
		return false, err
	}
	p.step("objects")
	err = p.run(ctx, index)
	made = err == nil || errors.Is(err, errMade)
	if made {
		l.landed(p, plan)
	}
	return made, err
}

// isMisplaced reports whether the index is missing although Git needs it, or exists although the embedded engine does
// not use one. Before the first commit, Git needs no index.
func (l *Log) isMisplaced(index indexState, commit hash) bool {
	return index.exists == l.embedded && !commit.IsZero()
}

// makeObjects creates the commits and, at the same time, the next index. It returns the checksum of that index.
func (l *Log) makeObjects(p *publication, plan *plan, parts []part, restore []*change, to objects) (index hash, err error) {
	restore = slices.DeleteFunc(restore, func(c *change) bool { return plan.differsAt(c.path) })
	var staging errgroup.Group
	staging.Go(func() (err error) {
		index, err = p.repo.makeIndex(p.repo.path(indexStage), p.at.commit, append(restore, plan.differing()...))
		return err
	})
	newest, err := l.writeParts(plan, parts, to)
	if err == nil && len(parts) > 0 {
		p.commit, err = to.Finish()
		p.mark.Log = newest.reflog()
		l.noteUnpacked(packWeight)
	}
	return index, errors.Join(err, staging.Wait())
}

// landed updates the Log's state after the branch and the index have moved.
func (l *Log) landed(p *publication, plan *plan) {
	l.putBack(plan)
	if p.commit == p.at.commit {
		l.settle(state{p.next, p.commit}, keepTime/3)
		l.cfg.Log.Info("updated the Git index to match the branch", "removed", l.embedded)
		return
	}
	l.mem.grown(plan.differing())
	if !l.embedded {
		l.mem.keepOwn(plan.differing())
	}
	l.settle(state{p.next, p.commit}, healTime)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.known = l.cfg.Now(), p.commit
}

// putBack puts the paths that a plan left out back into the queue.
func (l *Log) putBack(plan *plan) {
	l.RecordEdits(plan.apart)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaveRest(plan.rest)
}

// leaveOutBusy removes from a plan of edits all paths that an operation may have written by now. The commit leaves
// these paths as they are in HEAD. Only this goroutine commits, so every operation that began before the files were
// read is still in progress or in the queue.
func (l *Log) leaveOutBusy(p *plan) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.ofOperations()
	for _, c := range p.changes {
		if _, waits := waiting[c.path]; c.differs() && (waits || l.cfg.UnderWay(c.path)) {
			c.new = c.old
			l.putOff(c.path, time.Now())
		}
	}
}

// build plans the commit for a batch and reads the files. For edits, it asks git status which paths differ, unless
// force is set.
func (l *Log) build(repo *repository, at head, b batch, to objects) (*plan, error) {
	paths := b.edits
	if len(paths) > 0 && !b.force {
		var err error
		if paths, err = repo.differences(paths...); err != nil {
			return nil, err
		}
	}
	plan, err := newPlan(repo, at.commit, to)
	if err != nil {
		return nil, err
	}
	for _, op := range b.ops {
		paths = append(paths, op.Paths...)
		for _, path := range op.Paths {
			plan.written[path] = op
		}
	}
	maps.DeleteFunc(plan.written, func(path string, op operation) bool { _, known := op.Written[path]; return !known })
	most := 0
	if len(b.edits) > 0 && !b.force {
		most = mostEdits
	}
	plan.name(paths, most)
	err = plan.load(l.cfg.Log)
	if err != nil {
		plan.close()
		return nil, err
	}
	return plan, nil
}

// unsaved returns the changes at paths. It omits paths with the same content on disk and in HEAD. If HEAD is on the
// recorded branch, unsaved also records that HEAD is older than every operation recorded after this call. The caller
// must hold l.turn.
func (l *Log) unsaved(ctx context.Context, paths []string) ([]*change, error) {
	repo, err := l.openRepaired(ctx) // this also ensures that HEAD is durable
	if err != nil {
		return nil, err
	}
	defer repo.Close()
	at, err := repo.head()
	if err != nil {
		return nil, err
	}
	if mails, err := repo.recorded(); err == nil && (mails == "" || mails == at.branch) {
		l.mu.Lock()
		l.known = at.commit
		l.mu.Unlock()
	}
	plan, err := l.build(repo, at, batch{edits: paths, force: true}, nil)
	if err != nil {
		return nil, err
	}
	defer plan.close()
	var all []*change
	for _, c := range plan.sorted() {
		if c.skipped != "" || c.differs() && !c.gone && c.new.Mode != 0 {
			all = append(all, c)
		}
	}
	return all, nil
}
