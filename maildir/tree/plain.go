package tree

import (
	"io"
	"os"
	"syscall"
)

// ReadPlain reads a complete file outside the trees. It returns a *FormatError if the file is not regular or is
// larger than limit bytes. It never blocks on a pipe.
func ReadPlain(name string, limit int64) ([]byte, FileStat, error) {
	f, st, err := OpenPlain(name, os.O_RDONLY)
	if err != nil {
		return nil, st, err
	}
	defer f.Close()
	if st.Size > limit {
		return nil, st, &SizeError{st.Size, limit}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	return data, st, err
}

// OpenPlain opens a file outside the trees. With O_CREATE, it creates the file with mode 0600. It returns a
// *FormatError if the file is not regular. It never blocks on a pipe. The caller must close the file.
func OpenPlain(name string, flags int) (*os.File, FileStat, error) {
	f, err := os.OpenFile(name, flags|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0o600)
	if err != nil {
		stat := os.Stat
		if flags&syscall.O_NOFOLLOW != 0 {
			stat = os.Lstat
		}
		if fi, serr := stat(name); serr == nil && !fi.Mode().IsRegular() { // a link, a socket, or a folder opened to write
			return nil, StatOfInfo(fi), NotRegular(fi.Mode())
		}
		return nil, FileStat{}, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = NotRegular(fi.Mode())
	}
	if err != nil {
		f.Close()
		return nil, FileStat{}, err
	}
	return f, StatOfInfo(fi), nil
}
