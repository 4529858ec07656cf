package embedded

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/helper/chroot"

	"mailtree/maildir/tree"
)

// files gives go-git read access to a .git folder. It refuses all writes, because go-git's writes are neither safe
// nor durable. Opening a file does not block, even if the file is a FIFO.
type files struct{ dir string }

var _ billy.Filesystem = files{}

func (f files) full(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// file is an open file. Its name is relative to the folder, as go-git expects.
type file struct {
	*os.File
	name string
}

func (f file) Name() string { return f.name }
func (file) Lock() error    { return nil }
func (file) Unlock() error  { return nil }

func (f files) Open(name string) (billy.File, error) {
	opened, _, err := tree.OpenPlain(f.full(name), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return file{opened, name}, nil
}

func (f files) OpenFile(name string, _ int, _ fs.FileMode) (billy.File, error) { return f.Open(name) }

func (f files) ReadDir(name string) (all []fs.FileInfo, err error) {
	entries, err := os.ReadDir(f.full(name))
	for _, d := range entries {
		if fi, gone := d.Info(); gone == nil { // another program may have removed the file since then
			all = append(all, fi)
		}
	}
	return all, err
}

func (f files) Stat(name string) (fs.FileInfo, error)        { return os.Stat(f.full(name)) }
func (f files) Lstat(name string) (fs.FileInfo, error)       { return os.Lstat(f.full(name)) }
func (f files) Readlink(name string) (string, error)         { return os.Readlink(f.full(name)) }
func (f files) Chroot(name string) (billy.Filesystem, error) { return chroot.New(f, name), nil }
func (f files) Root() string                                 { return f.dir }
func (f files) Join(names ...string) string                  { return filepath.Join(names...) }
func (f files) Create(string) (billy.File, error)            { return nil, billy.ErrReadOnly }
func (f files) TempFile(string, string) (billy.File, error)  { return nil, billy.ErrReadOnly }
func (f files) MkdirAll(string, fs.FileMode) error           { return billy.ErrReadOnly }
func (f files) Rename(string, string) error                  { return billy.ErrReadOnly }
func (f files) Remove(string) error                          { return billy.ErrReadOnly }
func (f files) Symlink(string, string) error                 { return billy.ErrReadOnly }
