package maildir

import (
	"slices"
	"sync"
	"time"

	"mailtree/maildir/tree"
)

// conflictKey names something that an operation under way holds. What a key keeps others from is said at its kind.
type conflictKey struct {
	kind keyKind
	name string
}

type keyKind uint8

const (
	pathKey   keyKind = iota // the operation writes this file: no other one does
	insideKey                // the operation writes below this folder: nobody empties it
	belowKey                 // the operation empties this folder: nobody writes below it
	factKey                  // the operation decides on this fact: no other one that does is planned
	nameKey                  // the operation makes the agent of this name, in lower case
	popKey                   // the operation hands out a delivery of this agent
	fillKey                  // the operation delivers to this agent
)

// flight is the set of what the operations under way hold: those planned whose group has not ended. An operation is
// planned only on facts that none of them is changing, so that it may be planned before they are in the index. Safe
// for concurrent use; newFlight makes one.
type flight struct {
	mu     sync.Mutex
	keys   map[conflictKey]int // how many operations hold a key
	ops    map[*op]time.Time   // since when
	held   map[string]bool     // paths of edits being ingested
	failed int                 // operations that failed: what they held is as it was before
}

func newFlight() flight {
	return flight{keys: map[conflictKey]int{}, ops: map[*op]time.Time{}, held: map[string]bool{}}
}

// count returns how many operations under way hold the key.
func (f *flight) count(kind keyKind, name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.keys[conflictKey{kind, name}]
}

// names lists what operations under way hold of one kind.
func (f *flight) names(kind keyKind) (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range f.keys {
		if k.kind == kind {
			all = append(all, k.name)
		}
	}
	return all
}

// conflicts returns every key that an operation holds, those of its files among them.
func (o *op) conflicts() []conflictKey {
	all := slices.Concat(o.keys, o.planned)
	for _, w := range o.writes {
		all = append(all, conflictKey{pathKey, w.Path})
		for dir := pathDir(w.Path); dir != "."; dir = pathDir(dir) {
			all = append(all, conflictKey{insideKey, dir})
		}
	}
	return all
}

// factsHeld reports whether an operation under way decides on a fact that o decides on too.
func (f *flight) factsHeld(o *op) bool {
	return slices.ContainsFunc(o.keys, func(k conflictKey) bool { return k.kind == factKey && f.count(k.kind, k.name) > 0 })
}

// reserve enters an operation that was planned. False, and nothing is entered, where another one under way writes one of
// its paths, or one is held, or another one empties its folder, or writes where it would empty one.
func (f *flight) reserve(o *op) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := o.conflicts()
	for _, k := range keys {
		var against keyKind
		switch k.kind {
		case pathKey:
			if f.held[k.name] {
				return false
			}
			against = pathKey
		case insideKey:
			against = belowKey
		case belowKey:
			against = insideKey
		default:
			continue
		}
		if f.keys[conflictKey{against, k.name}] > 0 {
			return false
		}
	}
	for _, k := range keys {
		f.keys[k]++
	}
	f.ops[o] = time.Now()
	return true
}

// retire takes an operation out that was entered.
func (f *flight) retire(o *op) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range o.conflicts() {
		if f.keys[k]--; f.keys[k] == 0 {
			delete(f.keys, k)
		}
	}
	if o.err != nil {
		f.failed++
	}
	delete(f.ops, o)
}

// failures counts the operations that failed after they were entered.
func (f *flight) failures() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// hold keeps operations from a path until release: whoever ingests it must not find half of one. False where one under
// way writes it.
func (f *flight) hold(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys[conflictKey{pathKey, path}] > 0 {
		return false
	}
	f.held[path] = true
	return true
}

// release gives up all that is held, and reports whether anything was.
func (f *flight) release() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	some := len(f.held) > 0
	clear(f.held)
	return some
}

// idle reports whether nothing is to end that an operation may wait for.
func (f *flight) idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.ops)+len(f.held) == 0
}

// age is how long the oldest operation has been under way.
func (f *flight) age() (age time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, since := range f.ops {
		age = max(age, time.Since(since))
	}
	return age
}

// gate keeps groups from becoming visible while the tree is compared as a whole, so that nobody indexes half a group.
type gate struct {
	mu      sync.Mutex
	visible int           // groups of which files may be in place but not in the index
	shut    chan struct{} // closed when it opens again; nil: open
}

// enterGroup waits until groups may become visible.
func (g *gate) enterGroup() {
	for {
		g.mu.Lock()
		wait := g.shut
		if wait == nil {
			g.visible++
		}
		g.mu.Unlock()
		if wait == nil {
			return
		}
		<-wait
	}
}

func (g *gate) leaveGroup() {
	g.mu.Lock()
	g.visible--
	g.mu.Unlock()
}

// close lets no further group become visible and returns how many are. One at a time may have it closed.
func (g *gate) close() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut == nil {
		g.shut = make(chan struct{})
	}
	return g.visible
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

// failing remembers failures of making things durable. The system tells of a failed write-back once, to whoever syncs
// first: what was staged before that may be lost with it, whatever the next sync says.
type failing struct {
	mu    sync.Mutex
	count int
	last  error
	now   error // of the newest group or staging; nil after a success
	told  time.Time
}

// failingFor is how long a failure is told of where nothing was written since: in a project where nobody writes no success
// would ever end it.
const failingFor = time.Minute

// tell notes how the newest group or staging went.
func (f *failing) tell(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now, f.told = err, time.Now()
}

// newest is how the newest group or staging failed, if that is not long ago; nil where it did not.
func (f *failing) newest() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.told) > failingFor {
		return nil
	}
	return f.now
}

func (f *failing) noteFailure(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	f.last = err
}

// since returns the error of a failure after mark, which is a count of before.
func (f *failing) since(mark int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count == mark {
		return nil
	}
	return f.last
}

func (f *failing) mark() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}

// freshness knows how the files were found that the server wrote itself and has indexed since, so that the watcher's word of
// them needs no look into the index. It forgets after some seconds. Safe for concurrent use.
type freshness struct {
	mu         sync.Mutex
	young, old map[string]tree.FileStat
	turned     time.Time
}

const freshFor = 10 * time.Second

func (f *freshness) add(found map[string]Written, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turn(now)
	for path, w := range found {
		f.young[path] = w.Stat
	}
}

// turn forgets what is older than twice freshFor.
func (f *freshness) turn(now time.Time) {
	if f.young == nil || now.Sub(f.turned) > freshFor || now.Before(f.turned) {
		f.old, f.young, f.turned = f.young, map[string]tree.FileStat{}, now
	}
}

// confirmOwn reports, once, whether st is how the server's own file was found.
func (f *freshness) confirmOwn(path string, st tree.FileStat) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range []map[string]tree.FileStat{f.young, f.old} {
		if own, ok := m[path]; ok {
			delete(m, path)
			return own == st
		}
	}
	return false
}
