package gitlog

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"mailtree/maildir/gitlog/gitindex"
	"mailtree/maildir/gitlog/object"
)

// worktree reads files of the tree without ever following a link or waiting: every element of a
// path is opened below the one before it, because a check followed by an open by path can be raced:
// docs/durability.md, "Why it is done this way".
type worktree struct {
	dir  string
	root int
	way  []step // folders open on the way to the last file, for the next one beside it
}

type step struct {
	name string
	fd   int
}

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

func openWorktree(dir string) (*worktree, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return &worktree{dir: dir, root: fd}, nil
}

func (w *worktree) close() {
	w.back(0)
	unix.Close(w.root)
}

func (w *worktree) back(depth int) {
	for _, s := range w.way[depth:] {
		unix.Close(s.fd)
	}
	w.way = w.way[:depth]
}

// folder opens the folder that holds path and returns it with path's last element. A folder that is
// missing or lies behind a link is fs.ErrNotExist: to Git nothing is there.
func (w *worktree) folder(path string) (fd int, name string, err error) {
	elems := strings.Split(path, "/")
	dirs, name := elems[:len(elems)-1], elems[len(elems)-1]
	same := 0
	for same < len(dirs) && same < len(w.way) && w.way[same].name == dirs[same] {
		same++
	}
	w.back(same)
	fd = w.root
	if same > 0 {
		fd = w.way[same-1].fd
	}
	for _, d := range dirs[same:] {
		fd, err = again(func() (int, error) { return unix.Openat(fd, d, dirFlags, 0) })
		if err != nil {
			return 0, "", gone("open", path, err)
		}
		w.way = append(w.way, step{d, fd})
	}
	return fd, name, nil
}

// gone words an error of the system, a folder that is none or is a link being as good as missing.
func gone(op, path string, err error) error {
	if err == unix.ENOTDIR || err == unix.ELOOP {
		err = unix.ENOENT
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

func again(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != unix.EINTR {
			return n, err
		}
	}
}

// stat looks at path without following a link. fs.ErrNotExist when nothing is there.
func (w *worktree) stat(path string) (gitindex.Stat, error) {
	fd, name, err := w.folder(path)
	if err != nil {
		return gitindex.Stat{}, err
	}
	var st unix.Stat_t
	_, err = again(func() (int, error) { return 0, unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return gitindex.Stat{}, gone("lstat", path, err)
	}
	return gitindex.StatOf(&st), nil
}

// open opens the regular file at path. What is not a regular file is an errSpecial.
func (w *worktree) open(path string) (*os.File, gitindex.Stat, error) {
	fd, name, err := w.folder(path)
	if err != nil {
		return nil, gitindex.Stat{}, err
	}
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err = again(func() (int, error) { return unix.Openat(fd, name, flags, 0) })
	switch {
	case err == unix.ELOOP, err == unix.ENXIO:
		return nil, gitindex.Stat{}, errSpecial
	case err != nil:
		return nil, gitindex.Stat{}, gone("open", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, gitindex.Stat{}, gone("fstat", path, err)
	}
	s := gitindex.StatOf(&st)
	if !s.Is(unix.S_IFREG) {
		unix.Close(fd)
		return nil, s, errSpecial
	}
	s.Uncertain = time.Since(s.MTime) < settleTime || time.Since(s.CTime) < settleTime
	return os.NewFile(uintptr(fd), name), s, nil
}

// settleTime is longer than the step of any kernel's file clock (1 to 10 ms).
const settleTime = 50 * time.Millisecond

// maxBlob is the largest file that is committed; it is far above every limit of the mail.
const maxBlob = 256 << 20

var errSpecial = errors.New("not a regular file")

// largeFile is the size from which a file is not held in memory.
const largeFile = 1 << 20

// errChanging says that a file has another size by now.
var errChanging = errors.New("the file changes while it is read")

// blob reads the file or link at path: its mode as Git writes it, its hash, its content unless it is
// large, and its state.
func (w *worktree) blob(path string, st gitindex.Stat) (e entry, data []byte, now gitindex.Stat, err error) {
	if st.Is(unix.S_IFLNK) {
		if data, err = w.link(path); err != nil {
			return entry{}, nil, st, err
		}
		st.Uncertain = true
		return entry{Mode: object.ModeLink, Hash: object.HashOf(object.KindBlob, data)}, data, st, nil
	}
	f, st, err := w.open(path)
	if err != nil {
		return entry{}, nil, st, err
	}
	defer f.Close()
	e.Mode = object.ModeFile
	if st.Mode&0o100 != 0 {
		e.Mode = object.ModeExec
	}
	switch {
	case st.Size > maxBlob:
		return e, nil, st, fmt.Errorf("%d bytes, over the limit of %d", st.Size, maxBlob)
	case st.Size > largeFile:
		sum := sha1.New()
		sum.Write(object.Header(object.KindBlob, st.Size))
		n, err := io.Copy(sum, io.LimitReader(f, st.Size))
		if err == nil && n != st.Size {
			err = errChanging
		}
		e.Hash = hash(sum.Sum(nil))
		return e, nil, st, err
	}
	data = make([]byte, 0, st.Size+1)
	for int64(len(data)) <= largeFile {
		if len(data) == cap(data) {
			data = slices.Grow(data, 512)
		}
		n, rerr := f.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if rerr == io.EOF {
			break
		}
		if rerr != nil {
			return e, nil, st, rerr
		}
	}
	if int64(len(data)) != st.Size {
		if int64(len(data)) > largeFile {
			return e, nil, st, errChanging
		}
		st.Uncertain = true
	}
	e.Hash = object.HashOf(object.KindBlob, data)
	return e, data, st, nil
}

// giveChange gives the content of a change to the importer and reports whether it is still what was seen.
// An error is the importer's, or transient.
func (w *worktree) giveChange(c *change, to *importer) (same bool, err error) {
	if c.new.Mode == object.ModeLink {
		data, err := w.link(c.path)
		if err != nil || object.HashOf(object.KindBlob, data) != c.new.Hash {
			return false, nil
		}
		return true, to.blob(data)
	}
	f, st, err := w.open(c.path)
	if transient(err) {
		return false, err
	}
	if err != nil {
		return false, nil
	}
	defer f.Close()
	return to.giveFile(f, st.Size, c.new.Hash)
}

// link reads the link at path.
func (w *worktree) link(path string) ([]byte, error) {
	fd, name, err := w.folder(path)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, 4097)
	n, err := again(func() (int, error) { return unix.Readlinkat(fd, name, buf) })
	if err == syscall.EINVAL || n == len(buf) {
		return nil, errSpecial
	}
	if err != nil {
		return nil, gone("readlink", path, err)
	}
	return buf[:n:n], nil
}

// listNames names what a folder holds, sorted. Path "" is the tree itself.
func (w *worktree) listNames(path string) ([]string, error) {
	f, err := w.openFolder(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// sorted is list in the order of an index, folders with a slash at the end.
func (w *worktree) sorted(path string) ([]string, error) {
	f, err := w.openFolder(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := f.ReadDir(-1)
	names := make([]string, len(all))
	for i, d := range all {
		if names[i] = d.Name(); d.IsDir() {
			names[i] += "/"
		}
	}
	slices.Sort(names)
	return names, err
}

func (w *worktree) openFolder(path string) (*os.File, error) {
	fd, name := w.root, "."
	if path != "" {
		var err error
		if fd, name, err = w.folder(path); err != nil {
			return nil, err
		}
	}
	fd, err := again(func() (int, error) { return unix.Openat(fd, name, dirFlags, 0) })
	if err != nil {
		return nil, gone("open", path, err)
	}
	return os.NewFile(uintptr(fd), filepath.Join(w.dir, path)), nil // ReadDir looks by name where the system tells no kinds
}
