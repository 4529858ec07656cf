// Package tree safely reads and changes the files below a root that other programs write to as well. It does not
// follow symbolic links, allows no path outside the root, opens only regular files, and never blocks on a pipe.
//
//   - Tree reads files: Read, Stat, Walk, List, OpenFile.
//   - Changer changes files: it stages them below TmpDir, Tree.Sync makes them durable, Publish moves each one into
//     place with one rename, and Undo reverts a change.
//   - FaultOf classifies the error from a failed call: the file is gone, or the cause is the file itself or the
//     machine. If a comment does not mention errors, the call returns any error from the file system.
//   - ReadPlain and OpenPlain open single files outside any tree.
//
// The package does not depend on mail. Other packages define the meaning of the paths.
package tree

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Tree is the working tree of one project. All reads in the tree use it. A Tree does not follow links, opens only
// regular files, never blocks, and allows no path outside the tree (invariant I8, and docs/explanation/durability.md,
// "Why it is done this way"). A Tree is safe for concurrent use.
//
// A Tree keeps its folder open only while it is in use, because a store may have more projects than a process may
// have file descriptors. Each use opens the folder that is at dir at that time.
type Tree struct {
	dir     string
	noLink  bool // dir itself must not be a symbolic link
	maxFile int64

	// Fail is for fault tests. If it is not nil, it is called with the path before each open or stat of a file or
	// folder, and with SyncCall before each sync. If Fail returns an error, the call fails with that error. A test
	// sets Fail before it uses the tree.
	Fail func(p string) error

	mu     sync.Mutex
	users  int    // number of uses in progress that keep the folder open
	pinned bool   // Open counts as one of the users, until Close
	sys    system // the open folder, while users > 0
}

// SyncCall is the argument with which Tree.Fail is called before a sync.
const SyncCall = "(sync)"

// FileStat is the state of a file. If two FileStats are equal, the file did not change between them, unless the first
// one was taken less than Racy after a change. Times are in nanoseconds since 1970.
type FileStat struct {
	Mode         fs.FileMode
	Size         int64
	MTime, CTime int64
	Inode        uint64
}

// Racy is the time after a change to a file during which another change may not show in its FileStat: two ticks of
// the coarsest kernel clock in use (100 Hz).
const Racy = 20 * time.Millisecond

// MaxFile is the default size limit for a message file in bytes.
const MaxFile = 8 << 20

// Open opens the folder dir, which must exist, and keeps it open until Close. maxFile is the size limit for a message
// file in bytes; 0 means MaxFile. Open returns any error from opening the folder.
func Open(dir string, maxFile int64) (*Tree, error) {
	return (&Tree{dir: dir, maxFile: maxFile}).pin()
}

// OpenNoLink is like Open, but fails if dir itself is a symbolic link.
func OpenNoLink(dir string, maxFile int64) (*Tree, error) {
	return (&Tree{dir: dir, noLink: true, maxFile: maxFile}).pin()
}

func (t *Tree) pin() (*Tree, error) {
	if t.maxFile <= 0 {
		t.maxFile = MaxFile
	}
	if err := t.hold(); err != nil {
		return nil, err
	}
	t.pinned = true
	if err := t.checkSystem(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// Close closes the folder's descriptors. It always returns nil. The tree can still be used afterwards; each use then
// opens and closes the folder.
func (t *Tree) Close() error {
	t.mu.Lock()
	pinned := t.pinned
	t.pinned = false
	t.mu.Unlock()
	if pinned {
		t.release()
	}
	return nil
}

// Hold keeps the folder open until release is called, so that it does not have to be reopened for each use. Hold is
// only an optimization. If the folder cannot be opened, Hold reports no error, but each later use does.
func (t *Tree) Hold() (release func()) {
	if t.hold() != nil {
		return func() {}
	}
	return t.release
}

// hold opens the folder unless it is already open. The caller must call release. The error is fs.ErrNotExist if the
// folder does not exist. Other errors, such as EMFILE, are machine faults according to FaultOf.
func (t *Tree) hold() (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users == 0 {
		if err = t.openSystem(); err != nil {
			return err
		}
	}
	t.users++
	return nil
}

func (t *Tree) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users--; t.users == 0 {
		t.closeSystem()
	}
}

// Dir returns the absolute path of the working tree.
func (t *Tree) Dir() string { return t.dir }

// MaxFile returns the size limit for a message file in bytes.
func (t *Tree) MaxFile() int64 { return t.maxFile }

// Read returns the whole file at p, and the state that the file had when it was opened. It returns any error from
// os.Open, and a *FormatError if p is not a regular file, contains a symbolic link, or is larger than limit bytes.
func (t *Tree) Read(p string, limit int64) ([]byte, FileStat, error) {
	f, st, err := t.Open(p)
	if err != nil {
		return nil, st, err
	}
	defer f.Close()
	if !st.Mode.IsRegular() {
		return nil, st, NotRegular(st.Mode)
	}
	if st.Size > limit {
		return nil, st, &SizeError{st.Size, limit}
	}
	data := make([]byte, st.Size+1) // one extra byte, to detect a file that grew
	n, err := io.ReadFull(f, data)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return data[:n], st, nil
	}
	if err != nil {
		return nil, st, err
	}
	// The file grew while it was being read. The watcher reports later writes.
	rest, err := io.ReadAll(io.LimitReader(f, limit-st.Size))
	return append(data, rest...), st, err
}

// SameBytes reports whether the content of the file at p is exactly data. It stops reading at the first difference.
// It returns the same errors as Read.
func (t *Tree) SameBytes(p string, data []byte) (bool, error) {
	f, st, err := t.Open(p)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if !st.Mode.IsRegular() {
		return false, NotRegular(st.Mode)
	}
	if st.Size != int64(len(data)) {
		return false, nil
	}
	for part := make([]byte, 64<<10); ; {
		n, err := f.Read(part)
		if !bytes.HasPrefix(data, part[:n]) {
			return false, nil
		}
		data = data[n:]
		if errors.Is(err, io.EOF) {
			return len(data) == 0, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// SHA1 returns the SHA-1, in hex, of the file at p. It returns an error if the file is larger than limit bytes, and
// the same errors as Read.
func (t *Tree) SHA1(p string, limit int64) (string, error) {
	f, st, err := t.Open(p)
	if err != nil {
		return "", err
	}
	defer f.Close()
	switch {
	case !st.Mode.IsRegular():
		return "", NotRegular(st.Mode)
	case st.Size > limit:
		return "", &SizeError{st.Size, limit}
	}
	sum := sha1.New()
	if _, err := io.Copy(sum, io.LimitReader(f, limit+1)); err != nil { // the file may grow while it is read
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ReadOwned reads the file at p if the file belongs to the OS user uid. It checks the owner after opening the file.
// If the file belongs to another user, is not a regular file, or is larger than limit bytes, it returns
// fs.ErrNotExist.
func (t *Tree) ReadOwned(p string, limit int64, uid int) ([]byte, error) {
	f, _, err := t.OpenFile(p, os.O_RDONLY)
	if err != nil {
		return nil, fs.ErrNotExist
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if own, ok := fi.Sys().(*syscall.Stat_t); !ok || int(own.Uid) != uid || fi.Size() > limit {
		return nil, fs.ErrNotExist
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// Rename moves a file to another path, replacing any file there. The rename is durable only after Sync or SyncFolder.
func (t *Tree) Rename(from, to string) error {
	return t.withRoot(func(root *os.Root) error { return root.Rename(from, to) })
}

// withRoot calls do with the folder as an os.Root.
func (t *Tree) withRoot(do func(root *os.Root) error) error {
	if err := t.hold(); err != nil {
		return err
	}
	defer t.release()
	root, err := t.rooted()
	if err != nil {
		return err
	}
	return do(root)
}

// Walk calls fn for every file below a folder, in lexical order, including links and devices. If under is "" or ".",
// it walks the whole tree. It skips hidden folders (.git, .mailtree), and does not follow links to folders. It also
// skips entries that vanish during the walk or that the process has no permission to read. If fn returns an error or
// ctx ends, Walk stops and returns that error. If some folders cannot be listed because of a machine fault, it walks
// all other folders and returns an *UnlistedError.
func (t *Tree) Walk(ctx context.Context, under string, fn func(p string, d fs.DirEntry) error) error {
	if under == "" {
		under = "."
	}
	defer t.Hold()()
	var faults []Unreadable
	err := t.walk(ctx, under, fn, &faults)
	if err == nil && len(faults) > 0 {
		err = &UnlistedError{faults}
	}
	return err
}

// UnlistedError lists the folders that a Walk could not list because of a machine fault. The list is never empty.
type UnlistedError struct{ Folders []Unreadable }

// Error returns how many folders could not be listed, and the path and fault of the first one.
func (e *UnlistedError) Error() string {
	return fmt.Sprintf("%d folders cannot be listed now, including %s: %v", len(e.Folders), e.Folders[0].Path, e.Folders[0].Err)
}

// Unwrap returns the fault of the first folder.
func (e *UnlistedError) Unwrap() error { return e.Folders[0].Err }

func (t *Tree) walk(ctx context.Context, under string, fn func(p string, d fs.DirEntry) error, faults *[]Unreadable) error {
	f, err := t.openFolder(under)
	var entries []fs.DirEntry
	if err == nil {
		defer f.Close()
		entries, err = sortedEntries(f)
	}
	switch FaultOf(err) {
	case NoFault:
	case FaultMachine:
		*faults = append(*faults, Unreadable{under, err})
		return nil
	default: // the folder was removed or is no longer a folder, or there is no permission to read it
		return nil
	}
	for _, d := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := d.Name()
		if under != "." {
			p = under + "/" + p
		}
		switch {
		case !d.IsDir():
			err = fn(p, walked{d, f})
		case !strings.HasPrefix(d.Name(), "."):
			err = t.walk(ctx, p, fn, faults)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// walked is an entry that Walk found in a folder. The folder stays open until Walk leaves it.
type walked struct {
	fs.DirEntry
	folder *os.File
}

// StatOf returns the state of an entry that Walk has just found. It does not follow links.
func StatOf(d fs.DirEntry) (FileStat, error) {
	w := d.(walked)
	return statIn(w.folder, w.DirEntry)
}

// NotRegular returns an error that says what kind of file was found instead of a regular file.
func NotRegular(m fs.FileMode) *FormatError {
	what := "not a regular file"
	switch {
	case m&fs.ModeSymlink != 0:
		what = "a symbolic link, which mailtree does not follow"
	case m&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case m&fs.ModeDevice != 0:
		what = "a device"
	case m&fs.ModeSocket != 0:
		what = "a socket"
	case m.IsDir():
		what = "a folder, not a file"
	}
	return &FormatError{0, what}
}

// behindLink returns the error for a path that contains a symbolic link. It wraps a *FormatError and ELOOP.
func behindLink() error { return linkError{} }

type linkError struct{}

func (linkError) Error() string {
	return "reached through a symbolic link, which mailtree does not follow"
}

func (e linkError) Unwrap() []error { return []error{&FormatError{0, e.Error()}, syscall.ELOOP} }

// List returns a folder's entries sorted by name, including hidden entries. If it returns an error, it still returns
// the entries read so far.
func (t *Tree) List(dir string) ([]fs.DirEntry, error) {
	f, err := t.openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return sortedEntries(f)
}

// sortedEntries returns all of a folder's entries, sorted by name.
func sortedEntries(f *os.File) ([]fs.DirEntry, error) {
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// Unreadable is a file or folder that could not be read because of a machine fault (FaultMachine). Unlike a Problem,
// it does not mean that anything is wrong with the file.
type Unreadable struct {
	Path string
	Err  error
}
