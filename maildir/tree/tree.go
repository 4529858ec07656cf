// Package tree is one folder opened safely: whoever reads or changes files below a root that others
// write to as well uses it. No symbolic link is followed, no path leads out, nothing but a regular
// file is opened, and no open waits for the other end of a pipe.
//
//   - Tree reads: Read, Stat, Walk, List, OpenFile.
//   - Changer changes: it stages files below TmpDir, Tree.Sync makes them durable, Publish puts each into its place by one
//     rename, Undo takes that back.
//   - FaultOf says what a failed call tells about the file: gone, the file's own fault, or the machine's.
//     Where a comment names no error, the call returns those of the file system.
//   - ReadPlain and OpenPlain open single files that lie in no tree.
//
// The package knows nothing of mail: what a path means is decided elsewhere.
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

// Tree is the work tree of one project. Every read of the tree goes through it: links are never
// followed, nothing but regular files is opened, no read blocks, and no path leads out (invariant
// I8, and docs/durability.md, "Why it is done this way"). Safe for concurrent use.
//
// A tree holds descriptors of its folder only while it is used: a store may have more projects than
// the process may have descriptors. Each use takes the folder that lies at dir at that moment.
type Tree struct {
	dir     string
	noLink  bool // dir itself is to be no symbolic link
	maxFile int64

	// Fail, where it is not nil, is asked before each file or folder is opened or looked at, and
	// with SyncCall before each sync: its error is that call's. For fault tests, which set it
	// before anybody uses the tree.
	Fail func(p string) error

	mu     sync.Mutex
	users  int    // those who hold the folder now
	pinned bool   // Open is one of them, until Close
	sys    system // the folder, while there are users
}

// SyncCall is what Tree.Fail is asked with before a sync.
const SyncCall = "(sync)"

// FileStat is what tells whether a file changed since it was read. Times are nanoseconds since
// 1970.
type FileStat struct {
	Mode         fs.FileMode
	Size         int64
	MTime, CTime int64
	Inode        uint64
}

// Racy is the time after a file's change within which its stamp proves nothing: two ticks of the
// coarsest kernel clock in use (100 Hz).
const Racy = 20 * time.Millisecond

// MaxFile is the default limit of a message file in bytes; Open takes another.
const MaxFile = 8 << 20

// Open opens the folder dir, which must exist, and holds it until Close. maxFile is the limit of a
// message file in bytes, 0 for MaxFile. Errors: those of opening the folder.
func Open(dir string, maxFile int64) (*Tree, error) {
	return (&Tree{dir: dir, maxFile: maxFile}).pin()
}

// OpenNoLink is Open for a folder that must not be a symbolic link itself.
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

// Close gives the folder's descriptors up, and always returns nil. The tree can be used after it:
// each use opens the folder for as long as it takes.
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

// Hold keeps the folder open until release is called, so that the uses between do not each open it.
// It is a matter of speed only: where the folder cannot be opened, each use says so.
func (t *Tree) Hold() (release func()) {
	if t.hold() != nil {
		return func() {}
	}
	return t.release
}

// hold opens the folder, where no other user has it open; the caller calls release. Errors:
// fs.ErrNotExist where there is no folder any more; EMFILE and the like, which FaultOf calls the
// machine's.
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

// Dir is the absolute path of the work tree.
func (t *Tree) Dir() string { return t.dir }

// MaxFile is the limit of a message file in bytes.
func (t *Tree) MaxFile() int64 { return t.maxFile }

// Read returns the whole file at p and its state when it was opened. Errors: as of os.Open; a
// *FormatError where p is not a regular file, lies behind a link, or is larger than limit bytes.
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
	data := make([]byte, st.Size+1) // one more than there should be, to notice growth
	n, err := io.ReadFull(f, data)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return data[:n], st, nil
	}
	if err != nil {
		return nil, st, err
	}
	rest, err := io.ReadAll(io.LimitReader(f, limit-st.Size)) // grew while it was read: what is missing comes with its own event
	return append(data, rest...), st, err
}

// SameBytes reports whether the file at p holds exactly data. It reads no further than the first
// difference. Errors: as of Read.
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

// SHA1 returns the SHA-1, in hex, of the file at p, which has at most limit bytes. Errors: as of
// Read.
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
	if _, err := io.Copy(sum, io.LimitReader(f, limit+1)); err != nil { // it may grow meanwhile
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// ReadOwned reads the file at p where it is that user's, and asks that of the file that it opened.
// Errors: fs.ErrNotExist also for another user's file, for what is no regular file and for more
// than limit bytes.
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

// Rename puts the file at from in the place of to. It is not durable before Sync or SyncFolder.
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

// Walk calls fn for every file below the folder under ("" or "." for all), links and devices
// included, in lexical order; folders that are hidden (.git, .mailtree) are left out, folders
// behind links are not entered. What vanishes meanwhile, or may not be read, is left out. It ends
// early with fn's error or ctx's. Where a fault of the machine kept folders from being listed it
// walks all others and returns an *UnlistedError.
func (t *Tree) Walk(ctx context.Context, under string, fn func(p string, d fs.DirEntry) error) error {
	if under == "" {
		under = "."
	}
	defer t.Hold()()
	var faults []Unread
	err := t.walk(ctx, under, fn, &faults)
	if err == nil && len(faults) > 0 {
		err = &UnlistedError{faults}
	}
	return err
}

// UnlistedError names the folders that a Walk could not list because of a fault of the machine;
// there is at least one.
type UnlistedError struct{ Folders []Unread }

// Error names the first folder and why it could not be listed.
func (e *UnlistedError) Error() string {
	return fmt.Sprintf("%d folders cannot be listed now, %s among them: %v", len(e.Folders), e.Folders[0].Path, e.Folders[0].Err)
}

// Unwrap returns the fault of the first folder.
func (e *UnlistedError) Unwrap() error { return e.Folders[0].Err }

func (t *Tree) walk(ctx context.Context, under string, fn func(p string, d fs.DirEntry) error, faults *[]Unread) error {
	f, err := t.openFolder(under)
	var entries []fs.DirEntry
	if err == nil {
		defer f.Close()
		entries, err = sortedEntries(f)
	}
	switch FaultOf(err) {
	case NoFault:
	case FaultMachine:
		*faults = append(*faults, Unread{under, err})
		return nil
	default: // gone, something else by now, or not to be read
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

// walked is an entry that a Walk found, in a folder that is open until the Walk leaves it.
type walked struct {
	fs.DirEntry
	folder *os.File
}

// StatOf looks at what a Walk has just found, without following a link.
func StatOf(d fs.DirEntry) (FileStat, error) {
	w := d.(walked)
	return statIn(w.folder, w.DirEntry)
}

// NotRegular says what lies where a regular file belongs.
func NotRegular(m fs.FileMode) *FormatError {
	what := "not a regular file"
	switch {
	case m&fs.ModeSymlink != 0:
		what = "a symbolic link: links are never followed"
	case m&fs.ModeNamedPipe != 0:
		what = "a named pipe"
	case m&fs.ModeDevice != 0:
		what = "a device"
	case m&fs.ModeSocket != 0:
		what = "a socket"
	case m.IsDir():
		what = "a folder where a file belongs"
	}
	return &FormatError{0, what}
}

// behindLink is the error for a path that leads through a symbolic link: a *FormatError, and ELOOP
// to FaultOf.
func behindLink() error { return linkError{} }

type linkError struct{}

func (linkError) Error() string { return "lies behind a symbolic link: links are never followed" }

func (e linkError) Unwrap() []error { return []error{&FormatError{0, e.Error()}, syscall.ELOOP} }

// List returns the entries of a folder by name, hidden ones too; after an error those that were
// read.
func (t *Tree) List(dir string) ([]fs.DirEntry, error) {
	f, err := t.openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return sortedEntries(f)
}

// sortedEntries reads a folder whole.
func sortedEntries(f *os.File) ([]fs.DirEntry, error) {
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// Unread is a file or folder that a fault of the machine (FaultMachine) kept from being looked at.
// Unlike a Problem it says nothing about the file.
type Unread struct {
	Path string
	Err  error
}
