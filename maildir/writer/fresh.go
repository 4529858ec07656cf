package writer

import (
	"sync"
	"time"

	"mailtree/maildir/tree"
)

// freshness knows how the files were found that the server wrote itself and has indexed since, so
// that the watcher's word of them needs no look into the index. It forgets after some seconds. Safe
// for concurrent use.
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
