package gitlog

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// gitIndex is .git/index as it stands, versions 2 and 3 (gitformat-index(5)). It is only ever streamed, from the
// file to the next one: that of a million messages has three million entries and 400 MB. Everything that is not ours is
// written back as it was read. go-git's own encoder loses flags and the order of stages.
type gitIndex struct {
	version uint32
	count   int
	file    *os.File                                     // nil where there is none
	base    func(yield func(path string, e entry)) error // instead of a file: HEAD's
	known   map[string]indexEntry                        // what look found
	undo    []byte                                       // resolve-undo extension, once all entries were read
	seen    seen
	size    int64
	sound   bool // its checksum is known to be right
	mem     *memory
	mode    fs.FileMode // of the file
}

// indexEntry is an entry as it stands: head is the fixed part, with its flags; raw is all of it, padding
// included, where it was read from a file.
type indexEntry struct {
	head, raw []byte
	name      []byte
}

func (e indexEntry) clone() indexEntry {
	return indexEntry{head: slices.Clone(e.head), name: slices.Clone(e.name)}
}

// seen is what tells whether the file was exchanged since it was read.
type seen struct {
	exists bool
	stat   fileStat
	sum    [20]byte // checksum at its end
}

func (s seen) sameIndex(t seen) bool {
	return s.exists == t.exists && (!s.exists || s.sum == t.sum && s.stat.ino == t.stat.ino && s.stat.size == t.stat.size && s.stat.mtime.Equal(t.stat.mtime))
}

const (
	entryHead    = 62 // bytes of the fixed part, two more where extended
	flagExtended = 0x4000
	flagStages   = 0x3000
	flagName     = 0x0fff
	skipWorktree = 0x4000 // in the extended flags
)

func (e indexEntry) flags() uint16 { return binary.BigEndian.Uint16(e.head[60:]) }

func (e indexEntry) entry() entry {
	return entry{binary.BigEndian.Uint32(e.head[24:]), hash(e.head[40:60])}
}

func (e indexEntry) dev() uint32 { return binary.BigEndian.Uint32(e.head[16:]) }

func (e indexEntry) mtime() uint32 { return binary.BigEndian.Uint32(e.head[8:]) }

// mayHold reports whether some Git may take a file in that state for the entry's: not each compares more than this.
func (e indexEntry) mayHold(st fileStat) bool {
	return e.mtime() == uint32(st.mtime.Unix()) && binary.BigEndian.Uint32(e.head[36:]) == uint32(st.size) && st.is(e.entry().mode&unix.S_IFMT)
}

// smudge makes Git compare the content before it believes the entry.
func (e indexEntry) smudge() { clear(e.head[36:40]) }

// holds reports whether the entry's stat data is st, to the nanosecond.
func (e indexEntry) holds(st fileStat) bool {
	return bytes.Equal(e.head[:36], appendStat(nil, st, e.entry().mode)[:36]) &&
		binary.BigEndian.Uint32(e.head[36:]) == uint32(st.size)
}

// appendStat writes stat data; of the zero fileStat, zeros.
func appendStat(b []byte, st fileStat, mode uint32) []byte {
	if st.mtime.IsZero() {
		st.mtime, st.ctime = time.Unix(0, 0), time.Unix(0, 0)
	}
	for _, v := range []uint32{
		uint32(st.ctime.Unix()), uint32(st.ctime.Nanosecond()), uint32(st.mtime.Unix()), uint32(st.mtime.Nanosecond()),
		st.dev, st.ino, mode, st.uid, st.gid, uint32(st.size),
	} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// newEntry is the entry of a file that is committed. Where the file may have changed within the clock's step
// the size is 0: Git then looks at the content.
func newEntry(c *change) indexEntry {
	b := appendStat(make([]byte, 0, entryHead), c.stat, c.new.mode)
	if c.stat.uncertain {
		clear(b[36:40])
	}
	b = append(b, c.new.hash[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(min(len(c.path), flagName)))
	return indexEntry{head: b, name: []byte(c.path)}
}

var errIndex = errors.New("the file is damaged")

// openIndex opens .git/index; a missing one has no entries. The caller closes it. Errors: *hold where it is in a state
// that we leave alone, here and when it is read.
func (r *repository) openIndex() (*gitIndex, error) {
	x := &gitIndex{version: 2, mode: 0o644, mem: r.mem}
	f, s, err := r.openSeen()
	if err != nil || !s.exists {
		return x, err
	}
	x.file, x.seen, x.size, x.mode, x.sound = f, s, s.stat.size, fs.FileMode(s.stat.mode)&0o777, s.sameIndex(r.mem.sound)
	var head [12]byte
	if _, err := f.ReadAt(head[:], 0); transient(err) {
		x.close()
		return nil, err
	} else if err != nil || s.stat.size < int64(len(head)+20) || string(head[:4]) != "DIRC" {
		x.close()
		return nil, damagedIndex(errIndex)
	}
	x.version, x.count = binary.BigEndian.Uint32(head[4:]), int(binary.BigEndian.Uint32(head[8:]))
	switch x.version {
	case 2, 3:
		return x, nil
	case 4:
		err = &hold{mode: "waiting", reason: "The mail's Git index has version 4, which the server does not write: new mail is safe but not committed. Run `git update-index --index-version 2` in the mail's folder: what is staged stays so."}
	default:
		err = damagedIndex(fmt.Errorf("version %d is not known", x.version))
	}
	x.close()
	return nil, err
}

func (x *gitIndex) close() {
	if x.file != nil {
		x.file.Close()
	}
}

// damagedIndex says that the index cannot be read.
func damagedIndex(err error) error {
	return &hold{mode: "waiting", cause: err, reason: "The mail's Git index cannot be read (" + err.Error() + "). Remove .git/index in the mail's folder: it is made anew from the last commit."}
}

var badIndex = &hold{mode: "waiting", reason: "The mail's .git/index is not a regular file, or far too large. Remove it: it is made anew from the last commit."}

// seeIndex looks at the file without reading all of it.
func (r *repository) seeIndex() (seen, error) {
	f, s, err := r.openSeen()
	if f != nil {
		f.Close()
	}
	return s, err
}

// openSeen opens the file and looks at it.
func (r *repository) openSeen() (*os.File, seen, error) {
	f, err := os.OpenFile(r.path("index"), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, seen{}, nil
	}
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, seen{}, badIndex
	}
	if err != nil {
		return nil, seen{}, err
	}
	s, err := see(f)
	if err != nil {
		f.Close()
		return nil, s, err
	}
	return f, s, nil
}

func see(f *os.File) (seen, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return seen{}, err
	}
	s := seen{exists: true, stat: statOf(&st)}
	if !s.stat.is(unix.S_IFREG) || s.stat.size > maxIndex {
		return s, badIndex
	}
	var err error
	if s.stat.size >= 20 {
		_, err = f.ReadAt(s.sum[:], s.stat.size-20)
	}
	return s, err
}

const (
	maxIndex     = 2 << 30  // some fifteen million files
	maxExtension = 64 << 20 // a longer one is dropped
	indexBuffer  = 256 << 10
)

// all streams the entries in their order; one is valid until the next. err is set where it ends early: a *hold, or
// what the disk said.
func (x *gitIndex) all(err *error) iter.Seq[indexEntry] {
	return func(yield func(indexEntry) bool) {
		if x.base != nil {
			*err = x.base(yieldFiles(yield))
			return
		}
		if x.file == nil {
			return
		}
		in := &indexReader{sum: sha1.New()}
		var from io.Reader = io.NewSectionReader(x.file, 12, x.size-12-20)
		if !x.sound {
			head := make([]byte, 12)
			if _, *err = x.file.ReadAt(head, 0); *err != nil {
				return
			}
			in.sum.Write(head)
			from = io.TeeReader(from, in.sum)
		}
		in.Reader = bufio.NewReaderSize(from, indexBuffer)
		for range x.count {
			e, rerr := in.next()
			if rerr != nil {
				*err = holdIndex(rerr)
				return
			}
			if !yield(e) {
				return
			}
		}
		*err = holdIndex(x.readTrailer(in))
	}
}

// yieldFiles makes entries of files; after the end was asked for it makes no more.
func yieldFiles(yield func(indexEntry) bool) func(path string, e entry) {
	more := true
	return func(path string, e entry) {
		more = more && yield(newEntry(&change{path: path, new: e, stat: fileStat{uncertain: true}}))
	}
}

// holdIndex makes of an error in the file's content a *hold.
func holdIndex(err error) error {
	var h *hold
	switch {
	case err == nil, errors.As(err, &h):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, bufio.ErrBufferFull), errors.Is(err, errIndex):
		return damagedIndex(errIndex)
	}
	return err
}

// readTrailer reads what follows the entries and compares the checksum.
func (x *gitIndex) readTrailer(in *indexReader) error {
	if err := x.readExtensions(in); err != nil {
		return err
	}
	if in.disorder {
		return errIndex
	}
	if x.sound {
		return nil
	}
	if sum := [20]byte(in.sum.Sum(nil)); sum != x.seen.sum && x.seen.sum != [20]byte{} {
		return errIndex
	}
	x.sound, x.mem.sound = true, x.seen
	return nil
}

// hashing is what a checksum is made with; the package's hash is the name of an object.
type hashing interface {
	io.Writer
	Sum([]byte) []byte
}

// indexReader reads entries.
type indexReader struct {
	*bufio.Reader
	sum      hashing
	last     []byte
	skip     int  // bytes of the last entry
	disorder bool // the names are not in order: new ones would not be where they belong
}

// next reads an entry.
func (in *indexReader) next() (e indexEntry, err error) {
	if _, err := in.Discard(in.skip); err != nil {
		return e, err
	}
	in.skip = 0
	n := entryHead
	b, err := in.Peek(n)
	if err != nil {
		return e, err
	}
	flags := binary.BigEndian.Uint16(b[60:])
	if flags&flagExtended != 0 {
		n += 2
	}
	if flags&flagStages != 0 {
		return e, &hold{mode: "waiting", reason: "The mail's Git index has conflicts that are not resolved: new mail is safe but not committed. Resolve them with git add and git commit, or drop them with git reset."}
	}
	e, err = in.plain(n, int(flags&flagName))
	in.disorder = in.disorder || bytes.Compare(in.last, e.name) >= 0
	in.last = append(in.last[:0], e.name...)
	return e, err
}

// plain reads an entry with a fixed part of n bytes; size is its name's length, or flagName where it is longer.
func (in *indexReader) plain(n, size int) (e indexEntry, err error) {
	if size == flagName {
		if size, err = in.zero(n); err != nil {
			return e, err
		}
		size -= n
	}
	in.skip = (n + size + 8) &^ 7
	b, err := in.Peek(in.skip)
	if err != nil {
		return e, err
	}
	return indexEntry{head: b[:n:n], name: b[n : n+size : n+size], raw: b}, nil
}

// zero finds the first NUL from a place on.
func (in *indexReader) zero(from int) (int, error) {
	for size := from + flagName; ; size *= 2 {
		size = min(size, indexBuffer)
		b, err := in.Peek(size)
		if i := bytes.IndexByte(b[min(from, len(b)):], 0); i >= 0 {
			return from + i, nil
		}
		if err != nil {
			return 0, err
		}
		if size == indexBuffer {
			return 0, errIndex
		}
	}
}

// readExtensions keeps how conflicts were resolved. It drops what only saves Git time, such as the cache tree, which git
// makes anew; an extension that Git must know to read the index at all (split and sparse indexes) is a *hold.
func (x *gitIndex) readExtensions(in *indexReader) error {
	if _, err := in.Discard(in.skip); err != nil {
		return err
	}
	for {
		var head [8]byte
		if _, err := io.ReadFull(in, head[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		name, size := string(head[:4]), int64(binary.BigEndian.Uint32(head[4:]))
		if name[0] < 'A' || name[0] > 'Z' {
			return &hold{mode: "waiting", reason: fmt.Sprintf("The mail's Git index uses a form that the server cannot write (extension %q: a split or sparse index). Run `git update-index --no-split-index` and `git sparse-checkout disable` in the mail's folder.", name)}
		}
		if name != "REUC" || size > maxExtension {
			if n, err := io.CopyN(io.Discard, in, size); n < size {
				return err
			}
			continue
		}
		var data bytes.Buffer
		if n, err := io.CopyN(&data, in, size); n < size {
			return err
		}
		x.undo = data.Bytes()
	}
}

// look finds the entries of paths, for at.
func (x *gitIndex) look(paths []string) (err error) {
	x.known = map[string]indexEntry{}
	paths = slices.Sorted(slices.Values(paths))
	for e := range x.all(&err) {
		for len(paths) > 0 && paths[0] < string(e.name) {
			paths = paths[1:]
		}
		if len(paths) > 0 && paths[0] == string(e.name) {
			x.known[paths[0]] = e.clone()
		}
	}
	return err
}

// at is the entry of a path that was looked for.
func (x *gitIndex) at(path string) (indexEntry, bool) {
	e, ok := x.known[path]
	return e, ok
}

// entryAt is what a path that was looked for is in the index; the zero entry where it is not there.
func (x *gitIndex) entryAt(path string) (e entry) {
	if found, ok := x.at(path); ok {
		e = found.entry()
	}
	return e
}

// clean reports that the file at path with that state surely has HEAD's content, so that it need not be read.
func (x *gitIndex) clean(path string, st fileStat, old entry) bool {
	e, ok := x.at(path)
	return ok && old.isFile() && e.entry() == old && e.holds(st) && st.mtime.Unix() < x.seen.stat.mtime.Unix()
}

// sparse reports that a missing file is missing because of a sparse checkout.
func (x *gitIndex) sparse(path string) bool {
	e, ok := x.at(path)
	return ok && e.sparse()
}

func (e indexEntry) sparse() bool {
	return e.flags()&flagExtended != 0 && binary.BigEndian.Uint16(e.head[62:])&skipWorktree != 0
}

// fill takes the entries of a missing index from HEAD's tree. They go into a file that has no name.
func (x *gitIndex) fill(r *repository, tree hash) error {
	f, err := newTemp(r.path(newFolder))
	if err != nil {
		return err
	}
	x.file, x.sound = f, true
	if err := os.Remove(f.Name()); err != nil {
		return err
	}
	from := &gitIndex{version: x.version, mem: x.mem, base: func(yield func(path string, e entry)) error { return r.walk(tree, "", yield) }}
	if err := from.base(func(string, entry) { from.count++ }); err != nil {
		return err
	}
	if _, _, err := from.with(f, nil, nil, x.mem); err != nil {
		return err
	}
	x.count = from.count
	x.size, err = f.Seek(0, io.SeekEnd)
	return err
}
