package writer

import (
	"sync"
	"time"
)

// failing remembers how the newest group or staging went.
type failing struct {
	mu   sync.Mutex
	now  error // nil after a success
	told time.Time
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
