// Package registry keeps files of a store in memory that a person may edit while a server runs: who
// owns which mailbox, which hooks there are, whose seals are believed. Each Load looks at the
// file's stamp, and reads the file again where that has changed. It knows nothing of what the files
// say. WrongFile words the refusal of whatever else lies in the place of a file of the store.
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

// Format says how the content of a file is read and written, and how large the file may be.
type Format[T any] struct {
	Limit int64 // in bytes, of a file that is read

	// Parse makes the content of a file's bytes, which are nil where there is no file. The stamp
	// says when the file was changed.
	Parse func(data []byte, stamp tree.FileStat) (T, error)

	// Print makes the bytes of a file. Only Change calls it.
	Print func(content T) ([]byte, error)

	// Refuse says what an error of the file system, or a *tree.FormatError of what is no plain
	// file, means to the caller of Load and Change; nil leaves errors as they are.
	Refuse func(error) error
}

// File is one such file. Safe for concurrent use.
type File[T any] struct {
	path   string
	format Format[T]

	changing sync.Mutex // held by Change

	mu      sync.Mutex
	content T
	stamp   tree.FileStat // of the file that content was read from; zero where there was none
	counts  bool          // content is the file's for as long as its stamp stays the same
}

// New makes the File at path. It reads nothing yet.
func New[T any](path string, format Format[T]) *File[T] {
	return &File[T]{path: path, format: format}
}

// Load returns the content of the file. All callers get the same one: nobody may change it. Beside
// an error, Refuse's or Parse's, it returns what was read last, the zero value where nothing was.
func (f *File[T]) Load() (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts && f.unchanged() {
		return f.content, nil
	}
	f.counts = false
	began := time.Now()
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
	f.counts = stamp.CTime < began.Add(-tree.Racy).UnixNano() // else another change may leave this stamp
	return content, nil
}

// unchanged reports whether the file has the stamp of when it was read.
func (f *File[T]) unchanged() bool {
	fi, err := os.Stat(f.path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) && f.stamp == tree.FileStat{}
	}
	return tree.StatOfInfo(fi) == f.stamp
}

// Change replaces the file by what edit makes of its content, durably; not where both are equal.
// edit returns a new content and leaves the one that it is given as it is. Of several that run at
// once each sees the one before. Errors: as of Load; edit's, Print's and Refuse's.
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
