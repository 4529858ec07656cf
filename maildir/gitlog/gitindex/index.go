// Package gitindex reads and writes .git/index, versions 2 and 3 (gitformat-index(5)).
//
// An index is only ever streamed, from the file to the next one: that of a million messages has
// three million entries and 400 MB. Open looks at the file, Index.All streams its entries in their
// order, Index.Look remembers those of a few paths, and Index.Rewrite writes the next index: the
// same entries but for the changes, each of the others as it was read. A Writer makes one from
// nothing.
//
// What an index may hold beside entries: how conflicts were resolved is kept; what only saves git
// time, such as the cache tree, is dropped, and git makes it anew; a form that a tool must know to
// read the entries at all (split and sparse indexes) is ErrForm. go-git's own encoder loses flags
// and the order of stages.
//
// The package takes no locks and renames nothing: where the next index goes is the caller's matter,
// and so is a racy entry (racy-git(5)), for which Rewrite asks.
package gitindex

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Why an index is not read. ErrDamaged also says that it ends early or has a wrong checksum; it is
// wrapped. Other errors are the system's.
var (
	ErrSpecial   = errors.New("not a regular file, or far too large")
	ErrDamaged   = errors.New("the file is damaged")
	ErrVersion4  = errors.New("the index has version 4")
	ErrConflicts = errors.New("the index has conflicts that are not resolved")
	ErrForm      = errors.New("a split or sparse index")
)

const (
	maxIndex     = 2 << 30  // some fifteen million files
	maxExtension = 64 << 20 // a longer one is dropped
	bufferSize   = 256 << 10
)

// Index is an index file as it stands. The zero Index has no entries.
type Index struct {
	Seen    Seen
	Version uint32
	Count   int         // entries in it
	Mode    fs.FileMode // of the file

	file     *os.File
	size     int64
	verified *Seen
	known    map[string]Entry // what Look found
	undo     []byte           // resolve-undo extension, once all entries were read
}

// Open opens the index at path; where there is none the Index has no entries and Seen.Exists is
// false. The caller closes it. The checksum is compared when all entries are read; verified is an
// index of which that is known already, and becomes this one then. Errors: ErrSpecial, ErrDamaged,
// ErrVersion4.
func Open(path string, verified *Seen) (*Index, error) {
	f, s, err := openSeen(path)
	if err != nil {
		return nil, err
	}
	if !s.Exists {
		return &Index{Version: 2, Mode: 0o644}, nil
	}
	x := &Index{Seen: s, Mode: fs.FileMode(s.Stat.Mode) & 0o777, file: f, size: s.Stat.Size, verified: verified}
	if err := x.readHeader(); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

func (x *Index) readHeader() error {
	var head [12]byte
	if _, err := x.file.ReadAt(head[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	} else if err != nil || x.size < int64(len(head)+20) || string(head[:4]) != "DIRC" {
		return ErrDamaged
	}
	x.Version, x.Count = binary.BigEndian.Uint32(head[4:]), int(binary.BigEndian.Uint32(head[8:]))
	switch x.Version {
	case 2, 3:
		return nil
	case 4:
		return ErrVersion4
	}
	return fmt.Errorf("version %d is not known: %w", x.Version, ErrDamaged)
}

// Fill gives an Index that has no file the entries of one that was written to f from its beginning.
// The Index owns f from then on.
func (x *Index) Fill(f *os.File, count int) (err error) {
	x.file, x.Count = f, count
	x.size, err = f.Seek(0, io.SeekEnd)
	return err
}

// Close closes the file.
func (x *Index) Close() {
	if x.file != nil {
		x.file.Close()
	}
}

// Look finds the entries of paths, for At. Errors: as All.
func (x *Index) Look(paths []string) (err error) {
	x.known = map[string]Entry{}
	paths = slices.Sorted(slices.Values(paths))
	for e := range x.All(&err) {
		for len(paths) > 0 && paths[0] < string(e.Name) {
			paths = paths[1:]
		}
		if len(paths) > 0 && paths[0] == string(e.Name) {
			x.known[paths[0]] = e.clone()
		}
	}
	return err
}

// At returns the entry of a path that Look was asked for.
func (x *Index) At(path string) (Entry, bool) {
	e, ok := x.known[path]
	return e, ok
}

// Seen is what tells whether an index file was exchanged since it was read.
type Seen struct {
	Exists bool
	Stat   Stat
	Sum    [20]byte // checksum at its end; zeros where git was told to skip it
}

// Same reports whether both are the same file, or both none.
func (s Seen) Same(t Seen) bool {
	return s.Exists == t.Exists && (!s.Exists || s.Sum == t.Sum && s.Stat.Ino == t.Stat.Ino &&
		s.Stat.Size == t.Stat.Size && s.Stat.MTime.Equal(t.Stat.MTime))
}

// See looks at the index at path without reading all of it. Errors: ErrSpecial.
func See(path string) (Seen, error) {
	f, s, err := openSeen(path)
	if f != nil {
		f.Close()
	}
	return s, err
}

// openSeen opens the file and looks at it. It follows no link and waits for nothing.
func openSeen(path string) (*os.File, Seen, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Seen{}, nil
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO):
		return nil, Seen{}, ErrSpecial
	case err != nil:
		return nil, Seen{}, err
	}
	s, err := seeFile(f)
	if err != nil {
		f.Close()
		return nil, s, err
	}
	return f, s, nil
}

func seeFile(f *os.File) (Seen, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return Seen{}, err
	}
	s := Seen{Exists: true, Stat: StatOf(&st)}
	if !s.Stat.Is(unix.S_IFREG) || s.Stat.Size > maxIndex {
		return s, ErrSpecial
	}
	var err error
	if s.Stat.Size >= 20 {
		_, err = f.ReadAt(s.Sum[:], s.Stat.Size-20)
	}
	return s, err
}
