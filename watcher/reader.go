package watcher

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// read drains an inotify instance into the queue until the instance is closed, then closes dead. If an error breaks
// the instance, it first sends the error to dead. It does nothing else, because the kernel's queue (16,384 events)
// would overflow while a reader waits for a disk or a lock. See docs/speed.md, "Findings behind the design".
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

// fault notes an error from the instance. It returns the error if the instance is no longer usable.
func (w *Watcher) fault(err error) error {
	switch {
	case errors.Is(err, fsnotify.ErrEventOverflow):
		w.queue.overflow()
		return nil
	case errors.Is(err, syscall.EINVAL):
		// fsnotify removes the watch of a renamed folder. If the folder has been deleted by then, the kernel has
		// already removed the watch. Nothing is lost.
		return nil
	}
	return fmt.Errorf("reading inotify: %w", err)
}
