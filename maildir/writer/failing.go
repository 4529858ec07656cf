package writer

import (
	"sync"
	"time"
)

// failing records the outcome of the writer's most recent disk operations.
type failing struct {
	mu   sync.Mutex
	now  error // nil after success
	told time.Time
}

// failingFor is how long a failure is reported. Without this limit, a failure would be reported forever if the
// project never writes again, because only a success clears the failure.
const failingFor = time.Minute

// tell records the error of the most recent disk operations, or nil if they succeeded.
func (f *failing) tell(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now, f.told = err, time.Now()
}

// newest returns the error that tell last recorded, or nil if it is older than failingFor.
func (f *failing) newest() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.told) > failingFor {
		return nil
	}
	return f.now
}
