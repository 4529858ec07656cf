// Package registry keeps in memory the store's files that a user may edit while a server is running: the mailbox
// owners, the hooks and the trusted keys. Each Load checks the file's stamp (its size, times and inode), and rereads
// the file if the stamp has changed. The package does not depend on what the files contain. WrongFile returns the
// refusal for a file that is not a regular file or is too large.
package registry

import (
	"errors"
	"io/fs"
	"os"
	"reflect"
	"sync"
	"time"

	"mailtree/maildir/tree"
)

// Format says how a file's content is read and written, and how large the file may be.
type Format[T any] struct {
	Limit int64 // maximum size of a file to read, in bytes

	// Parse parses the file's bytes, which are nil if the file does not exist. stamp shows when the file was last
	// changed.
	Parse func(data []byte, stamp tree.FileStat) (T, error)

	// Print returns the file's bytes. Only Change calls it.
	Print func(content T) ([]byte, error)

	// Refuse converts an error for the caller of Load and Change. The error comes from the file system, or it is a
	// *tree.FormatError for a file that is not a regular file. If Refuse is nil, errors are returned unchanged.
	Refuse func(error) error
}

// File is a file kept in memory. It is safe for concurrent use.
type File[T any] struct {
	path   string
	format Format[T]
	now    func() time.Time

	changing sync.Mutex // held by Change

	mu      sync.Mutex
	content T
	stamp   tree.FileStat // stamp of the file that content was read from; zero if there was no file
	counts  bool          // content is valid while the file has this stamp
}

// New returns the File at path. It does not read the file yet.
func New[T any](path string, format Format[T]) *File[T] {
	return &File[T]{path: path, format: format, now: time.Now}
}

// Load returns the file's content. All callers share it and must not change it. If Parse or Refuse returns an error,
// Load returns that error together with the content that was last read, or with the zero value if there is none.
func (f *File[T]) Load() (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts && f.unchanged() {
		return f.content, nil
	}
	f.counts = false
	began := f.now()
	data, stamp, err := tree.ReadPlain(f.path, f.format.Limit)
	if errors.Is(err, fs.ErrNotExist) {
		data, stamp, err = nil, tree.FileStat{}, nil
	}
	if err != nil {
		return f.content, f.refuse(err)
	}
	content, err := f.format.Parse(data, stamp)
	if err != nil {
		return f.content, err
	}
	f.content, f.stamp = content, stamp
	f.counts = stamp.CTime < began.Add(-tree.Racy).UnixNano() // otherwise, a later change could leave the same stamp
	return content, nil
}

// unchanged reports whether the file still has the stamp that it had when it was read.
func (f *File[T]) unchanged() bool {
	fi, err := os.Stat(f.path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) && f.stamp == tree.FileStat{}
	}
	return tree.StatOfInfo(fi) == f.stamp
}

// Change durably replaces the file's content with the result of edit. If edit changes nothing, Change writes nothing.
// edit returns new content and must not modify its argument. Concurrent calls run one after another. Change returns any
// error from Load, edit, Print or Refuse.
func (f *File[T]) Change(edit func(content T) (T, error)) error {
	f.changing.Lock()
	defer f.changing.Unlock()
	before, err := f.Load()
	if err != nil {
		return err
	}
	after, err := edit(before)
	if err != nil || reflect.DeepEqual(before, after) {
		return err
	}
	data, err := f.format.Print(after)
	if err != nil {
		return err
	}
	return f.refuse(tree.WriteFile(f.path, data))
}

func (f *File[T]) refuse(err error) error {
	if err == nil || f.format.Refuse == nil {
		return err
	}
	return f.format.Refuse(err)
}
