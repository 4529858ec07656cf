package watcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// session watches one root folder with one inotify instance. It ends when the context is done, when the root is
// removed or replaced by another folder, or when the instance becomes unusable. The goroutine of Run owns all fields.
type session struct {
	w    *Watcher
	fs   *fsnotify.Watcher
	self identity // identity of the root folder

	folders *folders
	walk    walk
	root    *os.File // open while folders are walked, otherwise nil

	short  string      // the folder for which no watch was available; "" if there is none
	reason string      // why no watch was available, as logged
	retry  *time.Timer // runs while short is set
	stood  bool        // whether all folders were being watched at some point
}

// errReplaced ends a session whose root is gone or was replaced by another folder.
var errReplaced = errors.New("the folder was removed or replaced. If it is missing, create it again; the server will then watch it")

// session watches the root until ctx is done, or until the root or the instance is lost. The error states the reason
// for the user. stood reports whether the watch was ever complete.
func (w *Watcher) session(ctx context.Context) (stood bool, err error) {
	info, err := os.Stat(w.cfg.Root)
	if err != nil {
		return false, fmt.Errorf("%w: create the folder or fix its permissions; the server checks for it every %v", err, w.cfg.Poll)
	}
	if !info.IsDir() {
		return false, fmt.Errorf("%s is not a folder", w.cfg.Root)
	}
	inotify, err := w.sys.open()
	if err != nil {
		return false, errors.New(instanceReason(err))
	}
	dead := make(chan error, 1)
	go w.read(inotify, dead)
	s := &session{
		w:       w,
		fs:      inotify,
		self:    identify(info),
		folders: newFolders(),
		retry:   time.NewTimer(time.Hour),
	}
	s.retry.Stop()
	defer s.close(dead)
	s.watchParent()
	s.beginScan()
	err = s.run(ctx, dead)
	return s.stood, err
}

// close closes the inotify instance and waits for its reader.
func (s *session) close(dead <-chan error) {
	s.retry.Stop()
	s.closeRoot()
	_ = s.fs.Close() // fails only if the instance is already closed
	for range dead {
	}
	s.w.setFolders(0)
}

// watchParent watches the folder that contains the root, to notice when the root is removed. The watch on the root
// itself is not enough. If a process has the root open, for example as its working directory, the kernel sends no event
// when the root is deleted. If the parent cannot be watched, the session continues without this watch.
func (s *session) watchParent() {
	if parent := filepath.Dir(s.w.cfg.Root); parent != s.w.cfg.Root {
		_ = s.w.sys.add(s.fs, parent)
	}
}

// run alternates between handling all events and walking one folder, so events wait for at most one listing. When
// there is nothing to do, run sleeps.
func (s *session) run(ctx context.Context, dead <-chan error) error {
	for ctx.Err() == nil {
		events, lost := s.w.queue.drain()
		if err := s.handle(events, lost); err != nil {
			return err
		}
		if err := s.step(); err != nil {
			return err
		}
		left := s.walk.left()
		s.w.setFolders(s.folders.watched())
		s.w.queue.finished(left)
		if left > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-s.w.queue.wake:
		case <-s.retry.C:
			s.probe()
		case err, ok := <-dead:
			if !ok {
				err = errors.New("inotify was closed")
			}
			return err
		}
	}
	return nil
}

// checkRoot returns an error that wraps errReplaced unless the root is still the watched folder.
func (s *session) checkRoot() error {
	info, err := os.Stat(s.w.cfg.Root)
	if err != nil || identify(info) != s.self {
		return fmt.Errorf("%s: %w", s.w.cfg.Root, errReplaced)
	}
	return nil
}
