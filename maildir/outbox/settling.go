package outbox

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"mailtree/maildir/tree"
)

// SettleTime is how long a saved file must remain unchanged before the server treats it as finished. See
// docs/reference/tree.md, "Sending by saving".
const SettleTime = 2 * time.Second

// debouncer delays the handling of files saved by other programs until they have not changed for a while. It is safe
// for concurrent use. Use newDebouncer to create one.
type debouncer struct {
	now  func() time.Time // a monotonic clock
	bell chan struct{}    // receives a value when a file is added, because that file may be due first

	mu    sync.Mutex
	files map[string]pendingFile // by path
}

// pendingFile is a file's state, together with the time at which to check whether the file still has that state.
type pendingFile struct {
	path string
	stat tree.FileStat
	due  time.Time
}

func newDebouncer(now func() time.Time) debouncer {
	return debouncer{now: now, bell: make(chan struct{}, 1), files: map[string]pendingFile{}}
}

// in returns the time that is d from now.
func (s *debouncer) in(d time.Duration) time.Time { return s.now().Add(d) }

// wait schedules a file to be handled at the time due if its state is still st at that time.
func (s *debouncer) wait(path string, st tree.FileStat, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = pendingFile{path, st, due}
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

// takeDue returns the files that are due now, in the order in which they were saved, and the time until the next one is
// due.
func (s *debouncer) takeDue() (due []pendingFile, next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	next = time.Hour
	for path, f := range s.files {
		if left := f.due.Sub(now); left > 0 {
			next = min(next, left)
			continue
		}
		due = append(due, f)
		delete(s.files, path)
	}
	slices.SortFunc(due, func(a, b pendingFile) int {
		return cmp.Or(cmp.Compare(a.stat.CTime, b.stat.CTime), cmp.Compare(a.path, b.path))
	})
	return due, next
}
