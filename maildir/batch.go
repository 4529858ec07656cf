package maildir

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
	"mailtree/maildir/tree"
)

// Operations are written in groups, and groups pass three stages, each a goroutine of its project: operations are
// planned and staged; a group's files are made durable and put into place; it is ingested in one transaction, told to
// the history and answered. While one group syncs the next is staged, so groups grow under load by themselves, and a
// lone caller waits for nobody. What an operation under way holds, no other is planned on (flight). The watcher's batches
// are ingested between groups, so that nobody indexes half of one (docs/durability.md, "How one
// operation is written").

const (
	maxGroup = 256 // operations
	maxTries = 8   // plannings of one operation that found the tree ahead of the index
)

// op is one operation on its way through the writer.
type op struct {
	Op
	ctx  context.Context // of the caller; nil for the server's own
	keys []conflictKey   // what it holds while it is under way, whatever it is planned to do
	// plan runs in the planner's goroutine. It checks, and appends to writes. No writes and no error is an operation that
	// had nothing to do.
	plan    func(g *group) error
	writes  []*tree.Write
	planned []conflictKey // what it holds beside keys and the files that it writes, by its plan
	ids     []string      // of an operation on several messages: the history has a line for each
	tries   int
	place   int // in the journal record
	err     error
	done    chan struct{} // closed with the answer; nil where nobody waits
}

// fact is the key of operations that decide on the same fact: no two of them are under way at once.
func fact(name string) []conflictKey { return []conflictKey{{factKey, name}} }

// holds notes what the operation holds, by its plan, while it is under way.
func (o *op) holds(kind keyKind, names ...string) {
	for _, n := range names {
		o.planned = append(o.planned, conflictKey{kind, n})
	}
}

func (o *op) answer() {
	if o.done != nil {
		close(o.done)
	}
}

// group is one group commit. One stage has it at a time.
type group struct {
	p        *Project
	ctx      context.Context
	c        *tree.Changer
	number   uint64
	now      time.Time
	mark     int // of failures, when its first file was staged
	ops      []*op
	waiting  map[string][]Delivery      // unread deliveries of an agent not yet handed to a pop of this group
	tried    map[string]map[string]bool // ids of an agent's deliveries that this group has tried to hand out
	failures int                        // operations that had failed when waiting and tried were begun
	staged   int
	unsure   bool  // something could not be taken back: the journal keeps the group for the next start
	unsynced error // of the sync behind its renames
}

// groupLimits divides descriptors among groups: a token for each group under way in the store, and how many folders one of
// them holds open. Half of the descriptors are left to those who read. One project alone has up to four groups under way.
func groupLimits(files int) (tokens chan struct{}, folders int) {
	folders = min(max(files/64, 8), tree.MostFolders)
	return make(chan struct{}, min(max(files/2/(folders+4), 4), 64)), folders
}

// newGroup waits until there are not too many groups under way in the store; the caller calls close or end.
func (p *Project) newGroup(ctx context.Context) *group {
	p.store.grouping <- struct{}{}
	c := p.tree.Changer(p.store.folders)
	return &group{p: p, ctx: ctx, c: c, number: p.group.Add(1), waiting: map[string][]Delivery{}, tried: map[string]map[string]bool{}}
}

// close gives up what the group holds of the system.
func (g *group) close() {
	g.c.Close()
	<-g.p.store.grouping
}

// do hands an operation to the writer and waits for its answer. When ctx ends first, or the disk does not answer for
// Config.Patience, the operation may still happen, unless it was not planned yet.
func (p *Project) do(ctx context.Context, o *op) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.store.cfg.Patience, errStuck)
	defer cancel()
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
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.stopped:
		select {
		case <-o.done:
		default:
			return errStopped
		}
	}
	if o.err != nil {
		return refusal.Disk(o.err)
	}
	return nil
}

// Stalled is how long the oldest operation under way has been waiting for the disk: more than some seconds mean that it
// does not answer.
func (p *Project) Stalled() time.Duration { return p.flight.age() }

// Writes reports whether an operation under way writes a path, or has written it. It goes on to say so until the history was told.
func (p *Project) Writes(path string) bool { return p.flight.count(pathKey, path) > 0 }

// Failing is why the newest operation that reached the disk failed there; nil when it did not, or that is over a minute ago.
func (p *Project) Failing() error {
	return refusal.Disk(p.failing.newest())
}

// patience is how long a caller waits for the disk.
const patience = 30 * time.Second

var errStuck = &Error{What: refusal.DiskStuck}

var errStopped = &Error{What: refusal.Stopping}

// plan decides what an operation writes and stages it. What must wait for an operation under way is planned when a
// group has ended.
func (g *group) plan(o *op) {
	p := g.p
	switch {
	case o.ctx != nil && context.Cause(o.ctx) != nil:
		o.err = context.Cause(o.ctx)
		o.answer()
		return
	case p.flight.factsHeld(o):
		p.later(o)
		return
	}
	if len(g.ops) == 0 {
		g.mark = p.failing.mark()
	}
	g.now = p.store.cfg.Now().UTC()
	o.At, o.writes, o.Paths, o.planned = g.now, nil, nil, nil
	err := o.plan(g)
	switch {
	case errors.Is(err, errBusy):
		p.later(o)
		return
	case errors.Is(err, errStale):
		g.retry(o)
		return
	case err != nil || len(o.writes) == 0:
		o.err = err
		o.answer()
		return
	case !p.flight.reserve(o):
		p.later(o)
		return
	}
	if o.err = g.stage(o); o.err != nil {
		g.releaseOp(o)
		p.failing.tell(o.err)
		ring(p.look) // what was reported of its paths may be ingested now
		o.answer()
		return
	}
	g.ops = append(g.ops, o)
}

// errStale says that the tree is ahead of the index: the paths were ingested, so plan again. errBusy says that an operation
// under way decides it: plan again when that has ended.
var (
	errStale = errors.New("the tree is ahead of the index")
	errBusy  = errors.New("an operation under way decides")
)

// stale brings the index level with a path and asks for another planning.
func (g *group) stale(path string) error {
	if g.p.flight.count(pathKey, path) > 0 {
		return errBusy
	}
	if err := g.p.ingest(g.ctx, []string{path}); err != nil {
		return err
	}
	if err := g.p.needRead(path); err != nil {
		return err
	}
	return errStale
}

// present checks that what the index says lies at path does. Errors: as of stale, where it does not or cannot be looked at.
func (g *group) present(path string) error {
	if _, err := g.p.tree.Stat(path); err != nil {
		return g.stale(path)
	}
	return nil
}

// retry has the operation planned again, some times.
func (g *group) retry(o *op) {
	if o.tries++; o.tries >= maxTries {
		o.err = &Error{What: refusal.TreeRestless}
		o.answer()
		return
	}
	g.p.later(o)
	g.p.poke()
}

func (g *group) stage(o *op) error {
	for _, w := range o.writes {
		o.Paths = append(o.Paths, w.Path)
		g.step("stage " + w.Path)
		if err := g.c.Stage(w, stageName(g.number, g.staged)); err != nil {
			g.undo(o, err) // no journal knows of it
			return err
		}
		g.staged++
	}
	return nil
}

// undo takes an operation that failed with err back, and returns err; or an refusal.Unsure where that failed too.
func (g *group) undo(o *op, err error) error {
	for _, w := range o.writes {
		if uerr := g.c.Undo(w); uerr != nil {
			g.p.store.cfg.Log.Error("a failed operation could not be taken back", "project", g.p.slug, "path", w.Path, "error", uerr)
			g.p.scan()
			g.unsure, err = true, refusal.Unsure(errors.Join(err, uerr))
		}
	}
	return err
}

// step tells a fault test where the writer is.
func (g *group) step(name string) {
	if f := g.p.store.cfg.Step; f != nil {
		f(name)
	}
}

// publish renames. An operation of which a file cannot be put into place is taken back as a whole; where the cause
// is what somebody made or removed meanwhile, it is planned again.
func (g *group) publish() {
	kept := g.ops[:0]
	for _, o := range g.ops {
		err := g.publishOp(o)
		if err == nil {
			kept = append(kept, o)
			continue
		}
		o.err = g.undo(o, g.dropInJournal(err, o))
		g.releaseOp(o)
		if o.err == err && (errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist)) {
			o.err = nil
			g.p.Edited(o.Paths, false)
			g.retry(o)
			continue
		}
		g.p.failing.tell(o.err)
		o.answer()
	}
	clear(g.ops[len(kept):])
	g.ops = kept
}

func (g *group) publishOp(o *op) error {
	for _, w := range o.writes {
		g.step("rename " + w.Path)
		if err := g.c.Publish(w); err != nil {
			return err
		}
	}
	return nil
}

// dropInJournal says in the journal, durably, that operations that failed with err are to be taken back, before they are. It
// returns err; or an refusal.Unsure where that failed too.
func (g *group) dropInJournal(err error, ops ...*op) error {
	places := make([]int, len(ops))
	for i, o := range ops {
		places[i] = o.place
	}
	if derr := g.p.journal.dropOps(g.number, places); derr != nil {
		g.p.store.cfg.Log.Error("a failed operation could not be taken back in the journal; the next start may do it", "project", g.p.slug, "error", derr)
		g.unsure = true
		return refusal.Unsure(errors.Join(err, derr))
	}
	return err
}

// forget has the journal forget the group, unless the next start has something to do for it.
func (g *group) forget() {
	if !g.unsure {
		g.p.journal.done(g.number)
	}
}

// fail takes every operation of the group back and ends it.
func (g *group) fail(err error) {
	err = g.dropInJournal(err, g.ops...)
	g.p.failing.tell(err)
	for _, o := range g.ops {
		o.err = g.undo(o, err)
	}
	g.forget()
	g.end()
	ring(g.p.look) // what was reported of its paths may be ingested now
}

// end answers every operation of the group, which holds nothing any longer.
func (g *group) end() {
	g.close()
	for _, o := range g.ops {
		g.releaseOp(o)
		o.answer()
	}
	g.p.poke()
}

// releaseOp ends what an operation holds. Where it failed, those who wait for mail look again: what it was to mark was kept from them.
func (g *group) releaseOp(o *op) {
	g.p.flight.retire(o)
	if o.err != nil {
		g.p.store.feed.ringAgent(g.p.slug, o.Agent)
	}
}

func (g *group) record() journalRecord {
	r := journalRecord{Group: g.number}
	for i, o := range g.ops {
		o.place = i
		jo := journalOp{Verb: o.Verb, Agent: o.Agent, ID: o.ID, IDs: o.ids, Summary: o.Summary, At: o.At}
		for _, w := range o.writes {
			jo.Files = append(jo.Files, journalEntry{w.Path, w.Action, w.Sum, w.Staged, w.Was})
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
	all := []string{format.JournalFile}
	for _, o := range g.ops {
		for _, w := range o.writes {
			all = append(all, tree.TmpDir+"/"+w.Staged, pathDir(w.Path)+"/.")
		}
	}
	return all
}

// planCreate plans a file that must not exist yet.
func (o *op) planCreate(path string, data []byte) {
	o.writes = append(o.writes, &tree.Write{Path: path, Data: data, Sum: hexSum(data)})
}

// planReplace plans a file that may exist. What somebody else wrote there is in the history first: invariant I5.
func (g *group) planReplace(o *op, path string, data []byte) error {
	was, err := g.preserve(path)
	if err != nil {
		return err
	}
	o.writes = append(o.writes, &tree.Write{Path: path, Data: data, Sum: hexSum(data), Was: was, Action: tree.Replace})
	return nil
}

// planRemove plans the removal of a file; what somebody else wrote there is in the history first: invariant I5.
func (g *group) planRemove(o *op, path string) error {
	was, err := g.preserve(path)
	if err != nil || was == "" {
		return err
	}
	o.writes = append(o.writes, &tree.Write{Path: path, Sum: was, Action: tree.Remove})
	return nil
}

// preserve returns the SHA-256 of what lies at path once that is in the history, "" when nothing does. What the server
// itself wrote there and is not committed yet needs no preserving: it is replaced by its own next version. What
// somebody writes there later publish finds.
func (g *group) preserve(path string) (was string, err error) {
	p := g.p
	if p.flight.count(pathKey, path) > 0 {
		return "", errBusy
	}
	sum := func() (string, error) {
		data, _, err := p.tree.Read(path, format.MaxSmall)
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return hexSum(data), nil
	}
	if was, err = sum(); err != nil || was == "" {
		return "", err
	}
	p.mu.Lock()
	own, ok := p.own[path]
	p.mu.Unlock()
	if ok && own.sum == was {
		return was, nil
	}
	if err := p.history.Preserve(g.ctx, []string{path}); err != nil {
		return "", err
	}
	if now, err := sum(); err != nil || now != was { // which of both is in the history is not known
		return "", errors.Join(err, errStale)
	}
	return was, nil
}

// ownWrite is the content that a group not yet committed gave a path.
type ownWrite struct {
	sum   string
	group uint64
}

// keepOwn notes what the group wrote, but for messages: nothing replaces them.
func (g *group) keepOwn() {
	g.p.mu.Lock()
	defer g.p.mu.Unlock()
	for _, o := range g.ops {
		for _, w := range o.writes {
			if !strings.HasSuffix(w.Path, ".md") && int64(len(w.Data)) <= format.MaxSmall {
				g.p.own[w.Path] = ownWrite{w.Sum, g.number}
			}
		}
	}
}

// committed is called by the history when it has committed a group: from a goroutine of its own or of one who flushes.
func (p *Project) committed(group uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for path, own := range p.own {
		if own.group == group {
			delete(p.own, path)
		}
	}
}
