package watcher

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags are the flags for opening a folder to list it. With them, opening anything else fails, links are not
// followed, and opening a FIFO does not block.
const openFlags = syscall.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC

// openFolder opens the folder at rel below root. It does not follow links anywhere in rel. os.Root would follow links
// that stay inside the root. If a folder were replaced by a link to "..", the walk would then remove the watches of
// other folders. The caller must close the folder. The error wraps syscall.ENOTDIR or ELOOP if rel is not a folder.
func openFolder(root *os.File, rel string) (*os.File, error) {
	at, opened := int(root.Fd()), -1
	for name := range strings.SplitSeq(rel, "/") {
		next, err := openat(at, name)
		if opened >= 0 {
			_ = syscall.Close(opened) // opened only for reading, so an error does not matter
		}
		if err != nil {
			return nil, &fs.PathError{Op: "openat", Path: rel, Err: err}
		}
		at, opened = next, next
	}
	return os.NewFile(uintptr(opened), rel), nil
}

func openat(dir int, name string) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, openFlags, 0)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

// openRoot opens the root for walking, if it is not open yet, and returns it. The root stays open until closeRoot is
// called. The error wraps errReplaced if another folder has replaced the watched one.
func (s *session) openRoot() (*os.File, error) {
	if s.root != nil {
		return s.root, nil
	}
	root, err := os.OpenFile(s.w.cfg.Root, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := root.Stat(); err != nil || identify(info) != s.self {
		_ = root.Close() // opened only for reading, so an error does not matter
		return nil, fmt.Errorf("%s: %w", s.w.cfg.Root, errReplaced)
	}
	s.root = root
	return root, nil
}

// closeRoot closes the root if it is open. An idle watcher keeps no folder open, because the user may want to
// delete or unmount it.
func (s *session) closeRoot() {
	if s.root != nil {
		_ = s.root.Close() // opened only for reading, so an error does not matter
		s.root = nil
	}
}
