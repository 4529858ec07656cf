package registry

import "time"

// SetNow sets the clock of f.
func (f *File[T]) SetNow(now func() time.Time) { f.now = now }
