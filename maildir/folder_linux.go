package maildir

import (
	"bytes"
	"encoding/binary"
	"io/fs"

	"golang.org/x/sys/unix"
)

// folder is a folder of the tree held open, so that the files in it are reached by their names alone: no path is
// resolved again, and no link can lead elsewhere.
type folder struct{ fd int }

// dirent is one entry of a folder; mode holds the type only.
type dirent struct {
	name string
	mode fs.FileMode
}

// openFolder opens the folder at p and says how it stood then. Errors: as of Read.
func (t *Tree) openFolder(p string) (*folder, FileStat, error) {
	fd, err := t.open2(p, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK)
	if err != nil {
		return nil, FileStat{}, err
	}
	st, err := statOf(fd, p)
	if err != nil {
		unix.Close(fd)
		return nil, FileStat{}, err
	}
	return &folder{fd}, st, nil
}

func (d *folder) close() { unix.Close(d.fd) }

// entries lists the folder, in the order of the file system.
func (d *folder) entries() ([]dirent, error) {
	var all []dirent
	buf := make([]byte, 256<<10)
	for {
		n, err := unix.Getdents(d.fd, buf)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "list", Path: ".", Err: err}
		case n <= 0:
			return all, nil
		}
		for b := buf[:n]; len(b) > 19; { // struct linux_dirent64: ino 8, off 8, reclen 2, type 1, name
			size := int(binary.NativeEndian.Uint16(b[16:]))
			name := b[19:size]
			if i := bytes.IndexByte(name, 0); i >= 0 {
				name = name[:i]
			}
			if e := (dirent{string(name), typeOf(b[18])}); e.name != "." && e.name != ".." {
				if b[18] == unix.DT_UNKNOWN {
					st, err := d.stat(e.name)
					if FaultOf(err) == FaultMachine {
						return nil, err
					}
					e.mode = st.Mode.Type()
				}
				all = append(all, e)
			}
			b = b[size:]
		}
	}
}

func typeOf(t byte) fs.FileMode { return modeOf(uint32(t) << 12).Type() }

// stat looks at a file of the folder without following a link.
func (d *folder) stat(name string) (FileStat, error) {
	var s unix.Stat_t
	for {
		err := unix.Fstatat(d.fd, name, &s, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return FileStat{}, &fs.PathError{Op: "stat", Path: name, Err: err}
		}
		return statFrom(&s), nil
	}
}

// read fills buf with a regular file of the folder and says how it stood when it was opened. Errors: as of Read; the
// limit is one byte less than buf has.
func (d *folder) read(name string, buf []byte) ([]byte, FileStat, error) {
	var fd int
	for {
		var err error
		fd, err = unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err == nil {
			break
		}
		if err == unix.EINTR {
			continue
		}
		if st, serr := d.stat(name); serr == nil && !st.Mode.IsRegular() {
			return nil, st, notRegular(st.Mode)
		}
		return nil, FileStat{}, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	st, err := statOf(fd, name)
	if err != nil {
		return nil, st, err
	}
	if !st.Mode.IsRegular() {
		return nil, st, notRegular(st.Mode)
	}
	n := 0
	for n < len(buf) {
		m, err := unix.Read(fd, buf[n:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, st, &fs.PathError{Op: "read", Path: name, Err: err}
		}
		n += m
		if m == 0 || int64(n) == st.Size { // a file that grows meanwhile comes with another stat
			return buf[:n], st, nil
		}
	}
	return nil, st, tooLarge(max(st.Size, int64(n)), int64(len(buf)-1))
}
