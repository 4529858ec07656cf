package retry

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"mailtree/maildir/tree"
)

// TestOverdue: a path whose time has come while another one is noted is tried all the same.
func TestOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Set
		tried := make(chan []string, 10)
		retry := func(paths []string) { tried <- paths }
		fault := errors.New("fault")
		s.Update(nil, []tree.Unread{{Path: "a", Err: fault}}, retry)
		s.mu.Lock()
		s.paths["a"].next = time.Now().Add(-time.Millisecond) // the timer has not fired yet
		s.mu.Unlock()
		s.Update(nil, []tree.Unread{{Path: "b", Err: fault}}, retry)
		if got := <-tried; !slices.Equal(got, []string{"a"}) {
			t.Errorf("tried %q first", got)
		}
		if got := <-tried; !slices.Equal(got, []string{"b"}) {
			t.Errorf("tried %q then", got)
		}
		s.Update([]string{"a", "b"}, nil, retry)
		if left := s.All(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}
