package writer

import (
	"syscall"
	"testing"
	"time"
)

// TestFailingEnds checks that a failure is reported for only a minute, unless there is a new failure.
func TestFailingEnds(t *testing.T) {
	var f failing
	f.tell(syscall.EIO)
	if f.newest() == nil {
		t.Error("a recent failure is not reported")
	}
	f.told = f.told.Add(-failingFor - time.Second)
	if err := f.newest(); err != nil {
		t.Errorf("still reported: %v", err)
	}
}
