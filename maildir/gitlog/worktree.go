package gitlog

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// worktree reads files of the tree without ever following a link or waiting: every element of a
// path is opened below the one before it, because a check followed by an open by path can be raced:
// docs/durability.md, "Why it is done this way".
type worktree struct {
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
	return &worktree{root: fd}, nil
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

// fileState is what counts for us of a file's stat data.
type fileState struct {
	Mode         uint32
	Ino          uint64
	Size         int64
	MTime, CTime time.Time
}

func stateOf(st *unix.Stat_t) fileState {
	cs, cn := st.Ctim.Unix()
	ms, mn := st.Mtim.Unix()
	return fileState{Mode: uint32(st.Mode), Ino: st.Ino, Size: st.Size, MTime: time.Unix(ms, mn), CTime: time.Unix(cs, cn)}
}

// Is reports whether the file is of a kind such as unix.S_IFREG.
func (s fileState) Is(kind uint32) bool { return s.Mode&unix.S_IFMT == kind }

// stat looks at path without following a link. fs.ErrNotExist when nothing is there.
func (w *worktree) stat(path string) (fileState, error) {
	fd, name, err := w.folder(path)
	if err != nil {
		return fileState{}, err
	}
	var st unix.Stat_t
	_, err = again(func() (int, error) { return 0, unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return fileState{}, gone("lstat", path, err)
	}
	return stateOf(&st), nil
}

// open opens the regular file at path. What is not a regular file is an errSpecial.
func (w *worktree) open(path string) (*os.File, fileState, error) {
	fd, name, err := w.folder(path)
	if err != nil {
		return nil, fileState{}, err
	}
	const flags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err = again(func() (int, error) { return unix.Openat(fd, name, flags, 0) })
	switch {
	case err == unix.ELOOP, err == unix.ENXIO:
		return nil, fileState{}, errSpecial
	case err != nil:
		return nil, fileState{}, gone("open", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, fileState{}, gone("fstat", path, err)
	}
	s := stateOf(&st)
	if !s.Is(unix.S_IFREG) {
		unix.Close(fd)
		return nil, s, errSpecial
	}
	return os.NewFile(uintptr(fd), name), s, nil
}

// maxBlob is the largest file that is committed; it is far above every limit of the mail.
const maxBlob = 256 << 20

var errSpecial = errors.New("not a regular file")

// largeFile is the size from which a file is not held in memory.
const largeFile = 1 << 20

// errChanging says that a file has another size by now.
var errChanging = errors.New("the file changes while it is read")

// blob reads the file or link at path: its mode as Git writes it, its hash, and its content unless it
// is large.
func (w *worktree) blob(path string, st fileState) (e entry, data []byte, err error) {
	if st.Is(unix.S_IFLNK) {
		if data, err = w.link(path); err != nil {
			return entry{}, nil, err
		}
		return entry{modeLink, blobHash(data)}, data, nil
	}
	f, st, err := w.open(path)
	if err != nil {
		return entry{}, nil, err
	}
	defer f.Close()
	e.Mode = modeFile
	if st.Mode&0o100 != 0 {
		e.Mode = modeExec
	}
	if st.Size > maxBlob {
		return e, nil, fmt.Errorf("%d bytes, over the limit of %d", st.Size, maxBlob)
	}
	if st.Size > largeFile {
		sum := sha1.New()
		fmt.Fprintf(sum, "blob %d\x00", st.Size)
		n, err := io.Copy(sum, io.LimitReader(f, st.Size))
		if err == nil && n != st.Size {
			err = errChanging
		}
		e.Hash = hash(sum.Sum(nil))
		return e, nil, err
	}
	data, err = io.ReadAll(io.LimitReader(f, largeFile+1))
	if err == nil && len(data) > largeFile {
		err = errChanging
	}
	e.Hash = blobHash(data)
	return e, data, err
}

// giveChange gives the content of a change to the importer and reports whether it is still what was seen.
// An error is the importer's, or transient.
func (w *worktree) giveChange(c *change, to *importer) (same bool, err error) {
	if c.new.Mode == modeLink {
		data, err := w.link(c.path)
		if err != nil || blobHash(data) != c.new.Hash {
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
	return os.NewFile(uintptr(fd), path), nil
}
