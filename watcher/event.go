package watcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/fsnotify/fsnotify"
)

// gone is the set of operations that remove a path.
const gone = fsnotify.Remove | fsnotify.Rename

// handle processes drained events. It passes changed paths to waiting, and changed folders to the walk. It returns an
// error if the root was removed or replaced by another folder.
func (s *session) handle(events []event, lost bool) error {
	if lost {
		s.w.degrade("the kernel dropped file events because its queue was full, so the server is rescanning the tree. " +
			"If this happens often, run: sysctl -w fs.inotify.max_queued_events=131072")
		s.beginScan()
	}
	if len(events) == 0 {
		return nil
	}
	if err := s.checkRoot(); err != nil {
		return err
	}
	for _, ev := range events {
		if ev.rel == "." {
			if err := s.handleRoot(ev); err != nil {
				return err
			}
			continue
		}
		s.handlePath(ev)
	}
	return nil
}

// handleRoot handles events on the root itself. A root that was removed and re-created may have the same identity,
// because inodes are reused, so handleRoot relies on the event, not the identity.
func (s *session) handleRoot(ev event) error {
	if ev.op.Has(fsnotify.Create) || ev.op&gone != 0 {
		return fmt.Errorf("%s: %w", s.w.cfg.Root, errReplaced)
	}
	info, err := os.Stat(s.w.cfg.Root)
	if f := s.folders.byPath["."]; err == nil && f != nil && f.mode != info.Mode() {
		s.beginScan()
	}
	return nil
}

// handlePath updates the watches to match what is at the path now, regardless of the order of its events. A folder that
// appeared or reappeared is walked and then noted as changed. Anything else is noted immediately. If handlePath cannot
// examine the path, it does both.
func (s *session) handlePath(ev event) {
	if ev.op == fsnotify.Write {
		s.touch(ev)
		return
	}
	info, err := os.Lstat(s.w.abs(ev.rel))
	dir := err == nil && info.IsDir()
	if dir && ev.op&gone == 0 && s.known(ev.rel, info) {
		return
	}
	s.dropFolder(ev.rel)
	unknown := exhausted(err)
	if !dir {
		s.touch(ev)
	}
	if (dir || unknown) && !s.w.cfg.Skip(ev.rel, asFolder) {
		s.walk.push(visit{rel: ev.rel, noted: true})
		s.walk.push(visit{rel: ev.rel, report: true})
	}
}

// known reports whether the folder at rel is already watched and has the same mode. If so, a walk reached the folder
// before its event was read.
func (s *session) known(rel string, info fs.FileInfo) bool {
	f, ok := s.folders.byPath[rel]
	return ok && !f.refused && f.id == identify(info) && f.mode == info.Mode()
}

// Values for the second argument of Skip.
const (
	asFolder = true
	asFile   = false
)

// touch notes a change to a path that is not a folder, unless Skip excludes the path. A mode change is treated as a
// write, because it may have made the file readable or unreadable.
func (s *session) touch(ev event) {
	if !s.w.cfg.Skip(ev.rel, asFile) {
		written := ev.op&(fsnotify.Write|fsnotify.Chmod) != 0
		s.w.waiting.touch(ev.rel, ev.first, ev.last, written)
	}
}

// dropFolder removes the folder at rel, everything below it, and their watches. Otherwise fsnotify would keep the
// watches below a renamed folder and report events under the old names forever.
func (s *session) dropFolder(rel string) {
	s.folders.removeFolder(rel, func(f *folder) {
		// If a folder was deleted, the kernel has already removed its watch.
		if err := removeWatch(s.fs, s.w.abs(f.rel)); err != nil && !errors.Is(err, fsnotify.ErrNonExistentWatch) {
			s.w.cfg.Log.Debug("failed to remove a watch", "path", f.rel, "error", err)
		}
	})
}

// removeWatch removes the watch on a path. fsnotify 1.10.1 panics if a watched folder has replaced another one and
// fsnotify has not read that event yet. In that case, fsnotify dropped the old watch when the path was watched again,
// but kept the old watch's path.
func removeWatch(fs *fsnotify.Watcher, path string) (err error) {
	defer func() {
		if recover() != nil {
			err = fsnotify.ErrNonExistentWatch
		}
	}()
	return fs.Remove(path)
}
