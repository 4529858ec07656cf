package writer

import (
	"path"
	"slices"
	"sync"
	"time"
)

// Key names something that an operation under way holds: "path agents/Ann/profile.json".
type Key struct {
	Kind Kind
	Name string
}

// Kind says what a key keeps other operations from. A kind that is none of those below keeps them
// from nothing: the owner counts such keys with Writer.Holders when it plans.
type Kind string

// The kinds that the writer itself knows.
const (
	Path   Kind = "path"   // the operation writes this file: no other one does
	Inside Kind = "inside" // the operation writes below this folder: nobody empties it
	Below  Kind = "below"  // the operation empties this folder: nobody writes below it
	Fact   Kind = "fact"   // the operation decides on this fact: no other one that does is planned
)

// On is the key of operations that decide on the same fact: no two of them are under way at once.
func On(fact string) []Key { return []Key{{Fact, fact}} }

// flight is the set of what the operations under way hold: those planned whose group has not ended.
// An operation is planned only on facts that none of them is changing, so that it may be planned
// before they are in the index. Safe for concurrent use; newFlight makes one.
type flight struct {
	mu     sync.Mutex
	keys   map[Key]int       // how many operations hold a key
	txs    map[*Tx]time.Time // since when
	failed int               // operations that failed: what they held is as it was before
}

func newFlight() flight {
	return flight{keys: map[Key]int{}, txs: map[*Tx]time.Time{}}
}

// count returns how many operations under way hold the key.
func (f *flight) count(kind Kind, name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.keys[Key{kind, name}]
}

// names lists what operations under way hold of one kind.
func (f *flight) names(kind Kind) (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range f.keys {
		if k.Kind == kind {
			all = append(all, k.Name)
		}
	}
	return all
}

// conflicts returns every key that an operation holds, those of its files among them.
func (tx *Tx) conflicts() []Key {
	all := slices.Concat(tx.Keys, tx.planned)
	for _, w := range tx.Writes {
		all = append(all, Key{Path, w.Path})
		for dir := path.Dir(w.Path); dir != "."; dir = path.Dir(dir) {
			all = append(all, Key{Inside, dir})
		}
	}
	return all
}

// factsHeld reports whether an operation under way decides on a fact that tx decides on too.
func (f *flight) factsHeld(tx *Tx) bool {
	return slices.ContainsFunc(tx.Keys, func(k Key) bool { return k.Kind == Fact && f.count(k.Kind, k.Name) > 0 })
}

// reserve enters an operation that was planned. False, and nothing is entered, where another one
// under way writes one of its paths, or another one empties its folder, or writes
// where it would empty one.
func (f *flight) reserve(tx *Tx) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := tx.conflicts()
	for _, k := range keys {
		var against Kind
		switch k.Kind {
		case Path:
			against = Path
		case Inside:
			against = Below
		case Below:
			against = Inside
		default:
			continue
		}
		if f.keys[Key{against, k.Name}] > 0 {
			return false
		}
	}
	for _, k := range keys {
		f.keys[k]++
	}
	f.txs[tx] = time.Now()
	return true
}

// retire takes an operation out that was entered.
func (f *flight) retire(tx *Tx) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range tx.conflicts() {
		if f.keys[k]--; f.keys[k] == 0 {
			delete(f.keys, k)
		}
	}
	if tx.err != nil {
		f.failed++
	}
	delete(f.txs, tx)
}

// failures counts the operations that failed after they were entered.
func (f *flight) failures() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

// idle reports whether nothing is to end that an operation may wait for.
func (f *flight) idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.txs) == 0
}

// age is how long the oldest operation has been under way.
func (f *flight) age() (age time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, since := range f.txs {
		age = max(age, time.Since(since))
	}
	return age
}
