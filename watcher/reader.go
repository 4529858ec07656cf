package watcher

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// read drains an inotify instance into the queue until the instance is closed, then closes dead. If an error makes the
// instance unusable, read first sends the error to dead. read does nothing else. If it had to wait for a disk or a
// lock, the kernel's queue (16,384 events) could overflow. See docs/explanation/speed.md, "Findings behind the design".
func (w *Watcher) read(fs *fsnotify.Watcher, dead chan<- error) {
	defer close(dead)
	for {
		w.sys.read()
		select {
		case ev, ok := <-fs.Events:
			if !ok {
				return
			}
			if rel, inside := w.rel(ev.Name); inside {
				w.queue.add(rel, ev.Op, time.Now())
			}
		case err, ok := <-fs.Errors:
			if !ok {
				return
			}
			if err := w.fault(err); err != nil {
				dead <- err
				return
			}
		}
	}
}

// fault handles an error from the inotify instance. It returns an error only if the instance is no longer usable.
func (w *Watcher) fault(err error) error {
	switch {
	case errors.Is(err, fsnotify.ErrEventOverflow):
		w.queue.overflow()
		return nil
	case errors.Is(err, syscall.EINVAL):
		// When a folder is renamed, fsnotify removes its watch. That fails if the folder has been deleted since then,
		// because the kernel has already removed the watch. No event is lost.
		return nil
	}
	return fmt.Errorf("cannot read from inotify: %w", err)
}
