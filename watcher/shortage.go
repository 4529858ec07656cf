package watcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// exhausted reports whether err means that the system has run out of a resource that may become available again, or
// that a disk is temporarily not responding. The resources are watches (ENOSPC), instances or open files (EMFILE or
// ENFILE), and memory. Such an error says nothing about the folder itself.
func exhausted(err error) bool {
	for _, errno := range []syscall.Errno{
		syscall.ENOSPC, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
		syscall.EIO, syscall.ESTALE, syscall.ETIMEDOUT, syscall.EAGAIN, syscall.EINTR,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// instanceReason returns a sentence that explains why there is no inotify instance.
func instanceReason(err error) string {
	if errors.Is(err, syscall.EMFILE) {
		return fmt.Sprintf("%v: this user has too many inotify instances (or this process has too many open files); "+
			"to raise the limit, run: sysctl -w fs.inotify.max_user_instances=1024", err)
	}
	return fmt.Sprintf("no inotify instance: %v", err)
}

// watchReason returns a sentence that explains why a folder is not watched.
func (s *session) watchReason(rel string, err error) string {
	reason := fmt.Sprintf("cannot watch %q: %v. Until this succeeds, the server rescans the tree every %v", rel, err, s.w.cfg.Poll)
	if errors.Is(err, syscall.ENOSPC) {
		reason += ". This user has no inotify watches left; to raise the limit, run: sysctl -w fs.inotify.max_user_watches=1048576"
	}
	return reason
}

// excuse handles an error that occurred for a folder. It returns an error only if the session must end, because the
// root was replaced or cannot be listed.
func (s *session) excuse(rel string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errReplaced):
		return err
	case exhausted(err):
		s.exhaust(rel, err)
		return nil
	case rel == ".":
		return fmt.Errorf("cannot watch %s: %w", s.w.cfg.Root, err)
	case absent(err):
		s.dropFolder(rel)
		return nil
	}
	if f := s.refused(rel); f != nil && s.folders.refuse(f) {
		s.w.cfg.Log.Warn("cannot watch a folder, so changes in it go unnoticed", "path", rel, "error", err)
	}
	return nil
}

// refused returns the entry for a folder that could not be opened, watched or listed. If there is no entry, refused
// creates it. The entry is needed to log the error only once.
func (s *session) refused(rel string) *folder {
	if f := s.folders.byPath[rel]; f != nil {
		return f
	}
	info, err := os.Lstat(s.w.abs(rel))
	if err != nil || !info.IsDir() {
		return nil
	}
	return s.claim(rel, info)
}

// absent reports whether err means that the folder is gone or that a link has replaced it. In both cases, an event
// follows.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// exhaust stops the walk at a folder for which no watch is available. Scans then find the changes: exhaust requests a
// Scan immediately, and probe requests one every Poll until a watch becomes available.
func (s *session) exhaust(rel string, err error) {
	s.dropFolder(rel)
	s.walk.todo, s.walk.full = nil, false
	if s.short == "" {
		s.short, s.reason = rel, s.watchReason(rel, err)
		s.w.waiting.askScan()
		s.retry.Reset(s.w.cfg.Poll)
	}
	s.w.degrade(s.reason)
}

// probe requests a Scan and tries again to watch the folder for which no watch was available. This attempt takes one
// call instead of a walk. If the call succeeds, all folders are walked again.
func (s *session) probe() {
	s.w.waiting.askScan()
	abs := s.w.abs(s.short)
	err := s.w.sys.add(s.fs, abs)
	if exhausted(err) {
		s.retry.Reset(s.w.cfg.Poll)
		return
	}
	if err == nil {
		// Every watch must have an entry in s.folders, so the walk adds this watch again.
		_ = removeWatch(s.fs, abs)
	}
	s.short = ""
	s.beginScan()
}
