package watcher

import (
	"errors"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestPoll checks that a watcher with NoEvents opens no inotify instance, and finds every change through Scans.
func TestPoll(t *testing.T) {
	t.Parallel()
	w := start(t,
		func(_ *watched, cfg *Config) { cfg.NoEvents, cfg.Poll = true, 5*time.Millisecond },
		func(w *Watcher) {
			w.sys.open = func() (*fsnotify.Watcher, error) {
				t.Error("an inotify instance was opened")
				return nil, errors.New("none")
			}
		})
	w.mode("polling")
	w.mkdir("a/b")
	w.write("a/b/1", "x")
	w.write("2", "x")
	w.until("new files are found", w.equal)
	w.rename("a", "c")
	w.remove("2")
	w.until("moves and removals are found", func() bool { return w.equal() && len(w.mirrored()) == 1 })
	if s := w.State(); s.Reason != "" || s.Folders != 0 {
		t.Errorf("state %+v", s)
	}
}
