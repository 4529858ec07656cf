package writer

import (
	"sync"
	"time"
)

// failing remembers failures of making things durable. The system tells of a failed write-back
// once, to whoever syncs first: what was staged before that may be lost with it, whatever the next
// sync says.
type failing struct {
	mu    sync.Mutex
	count int
	last  error
	now   error // of the newest group or staging; nil after a success
	told  time.Time
}

// failingFor is how long a failure is told of where nothing was written since: in a project where
// nobody writes no success would ever end it.
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
