package writer

import (
	"syscall"
	"testing"
	"time"
)

// TestFailingEnds checks that a failure is reported for a minute if nothing was written since.
func TestFailingEnds(t *testing.T) {
	var f failing
	f.tell(syscall.EIO)
	if f.newest() == nil {
		t.Error("a failure of just now is not told of")
	}
	f.told = f.told.Add(-failingFor - time.Second)
	if err := f.newest(); err != nil {
		t.Errorf("still told of: %v", err)
	}
}
