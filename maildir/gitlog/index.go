package gitlog

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sort"
	"strings"

	"golang.org/x/sys/unix"
)

// gitIndex is .git/index as it stands, versions 2, 3 and 4 (gitformat-index(5)). It is kept as bytes: everything
// that is not ours is written back as it was read. go-git's own encoder loses flags and the order of stages.
type gitIndex struct {
	version uint32
	entries []indexEntry
	tree    []byte // cache-tree extension
	undo    []byte // resolve-undo extension
	seen    seen
	mode    fs.FileMode // of the file
}

// indexEntry is an entry as it stands: head is the fixed part, with its flags; raw is all of it, padding
// included, in versions 2 and 3.
type indexEntry struct {
	head, raw []byte
	name      []byte
}

// seen is what tells whether the file was exchanged since it was read.
type seen struct {
	exists bool
	stat   fileStat
	sum    [20]byte // checksum at its end
}

func (s seen) same(t seen) bool {
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

// smudge makes Git compare the content before it believes the entry.
func (e indexEntry) smudge() { clear(e.head[36:40]) }

// holds reports whether the entry's stat data is st, to the nanosecond.
func (e indexEntry) holds(st fileStat) bool {
	return bytes.Equal(e.head[:36], appendStat(nil, st, e.entry().mode)[:36]) &&
		binary.BigEndian.Uint32(e.head[36:]) == uint32(st.size)
}

func appendStat(b []byte, st fileStat, mode uint32) []byte {
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

// readIndex reads .git/index; a missing one is empty. Errors: *hold where it is in a state that we leave alone.
func (r *repository) readIndex() (*gitIndex, error) {
	x := &gitIndex{version: 2, mode: 0o644}
	var data []byte
	var err error
	for range 10 { // it may be exchanged between the two looks
		if x.seen, err = r.seeIndex(); err != nil {
			return nil, err
		}
		if !x.seen.exists {
			return x, nil
		}
		data, err = readRegular(r.path("index"), maxFile)
		if errors.Is(err, errNotFile) {
			return nil, badIndex
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		again, err := r.seeIndex()
		if err != nil {
			return nil, err
		}
		if again.same(x.seen) {
			break
		}
	}
	x.mode = fs.FileMode(x.seen.stat.mode) & 0o777
	if err := x.parse(data); err != nil {
		var h *hold
		if errors.As(err, &h) {
			return nil, h
		}
		return nil, &hold{mode: "waiting", cause: err, reason: "The mail's Git index cannot be read (" + err.Error() + "). Remove .git/index in the mail's folder: it is made anew from the last commit."}
	}
	return x, nil
}

var badIndex = &hold{mode: "waiting", reason: "The mail's .git/index is not a regular file, or far too large. Remove it: it is made anew from the last commit."}

// seeIndex looks at the file without reading all of it.
func (r *repository) seeIndex() (seen, error) {
	f, err := os.OpenFile(r.path("index"), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return seen{}, nil
	}
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return seen{}, badIndex
	}
	if err != nil {
		return seen{}, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return seen{}, err
	}
	s := seen{exists: true, stat: statOf(&st)}
	if !s.stat.is(unix.S_IFREG) || s.stat.size > maxFile {
		return s, badIndex
	}
	if s.stat.size >= 20 {
		_, err = f.ReadAt(s.sum[:], s.stat.size-20)
	}
	return s, err
}

func (x *gitIndex) parse(data []byte) error {
	if len(data) < 12+20 || string(data[:4]) != "DIRC" {
		return errIndex
	}
	body, sum := data[:len(data)-20], data[len(data)-20:]
	if own := sha1.Sum(body); !bytes.Equal(own[:], sum) && !bytes.Equal(sum, make([]byte, 20)) {
		return errIndex
	}
	x.version = binary.BigEndian.Uint32(body[4:])
	if x.version < 2 || x.version > 4 {
		return fmt.Errorf("version %d is not known", x.version)
	}
	count := int(binary.BigEndian.Uint32(body[8:]))
	if count > len(body)/entryHead {
		return errIndex
	}
	x.entries = make([]indexEntry, 0, count+16)
	rest := body[12:]
	for range count {
		var err error
		if rest, err = x.parseEntry(rest); err != nil {
			return err
		}
	}
	return x.parseExtensions(rest)
}

func (x *gitIndex) parseEntry(b []byte) (rest []byte, err error) {
	if len(b) < entryHead {
		return nil, errIndex
	}
	n := entryHead
	flags := binary.BigEndian.Uint16(b[60:])
	if flags&flagExtended != 0 {
		n += 2
	}
	if flags&flagStages != 0 {
		return nil, &hold{mode: "waiting", reason: "The mail's Git index has conflicts that are not resolved: new mail is safe but not committed. Resolve them with git add and git commit, or drop them with git reset."}
	}
	e := indexEntry{}
	if x.version == 4 {
		return x.parseShared(b, n)
	}
	if len(b) < n {
		return nil, errIndex
	}
	size := int(flags & flagName)
	if size == flagName {
		if size = bytes.IndexByte(b[n:], 0); size < 0 {
			return nil, errIndex
		}
	}
	end := (n + size + 8) &^ 7
	if len(b) < end {
		return nil, errIndex
	}
	e.head, e.name, e.raw = b[:n:n], b[n:n+size:n+size], b[:end:end]
	x.entries = append(x.entries, e)
	return b[end:], nil
}

// parseShared reads the name of a version 4 entry, which shares a prefix with the one before.
func (x *gitIndex) parseShared(b []byte, n int) (rest []byte, err error) {
	var before []byte
	if len(x.entries) > 0 {
		before = x.entries[len(x.entries)-1].name
	}
	strip, i := 0, n
	for first := true; ; first = false {
		if i >= len(b) || strip > len(before) {
			return nil, errIndex
		}
		c := b[i]
		i++
		if !first {
			strip++
		}
		strip = strip<<7 | int(c&0x7f)
		if c&0x80 == 0 {
			break
		}
	}
	end := bytes.IndexByte(b[i:], 0)
	if end < 0 || strip > len(before) {
		return nil, errIndex
	}
	name := append(before[:len(before)-strip:len(before)-strip], b[i:i+end]...)
	x.entries = append(x.entries, indexEntry{head: b[:n:n], name: name})
	return b[i+end+1:], nil
}

// parseExtensions keeps what stays true and drops what only saves Git time; an extension that Git must know to
// read the index at all (split and sparse indexes) is a *hold.
func (x *gitIndex) parseExtensions(b []byte) error {
	for len(b) > 0 {
		if len(b) < 8 {
			return errIndex
		}
		name, size := string(b[:4]), int(binary.BigEndian.Uint32(b[4:]))
		if len(b) < 8+size {
			return errIndex
		}
		data := b[8 : 8+size]
		switch {
		case name == "TREE":
			x.tree = data
		case name == "REUC":
			x.undo = data
		case name[0] < 'A' || name[0] > 'Z':
			return &hold{mode: "waiting", reason: fmt.Sprintf("The mail's Git index uses a form that the server cannot write (extension %q: a split or sparse index). Run `git update-index --no-split-index` and `git sparse-checkout disable` in the mail's folder.", name)}
		}
		b = b[8+size:]
	}
	return nil
}

// find returns the position of the first entry whose name is not less than name.
func (x *gitIndex) find(name string) int { return x.findIn(0, len(x.entries), name) }

// findIn is find among the entries from lo to hi.
func (x *gitIndex) findIn(lo, hi int, name string) int {
	return lo + sort.Search(hi-lo, func(i int) bool { return string(x.entries[lo+i].name) >= name })
}

func (x *gitIndex) at(path string) (indexEntry, bool) {
	if i := x.find(path); i < len(x.entries) && string(x.entries[i].name) == path {
		return x.entries[i], true
	}
	return indexEntry{}, false
}

// clean reports that the file at path with that state surely has HEAD's content, so that it need not be read.
func (x *gitIndex) clean(path string, st fileStat, old entry) bool {
	e, ok := x.at(path)
	return ok && old.isFile() && e.entry() == old && e.holds(st) && st.mtime.Unix() < x.seen.stat.mtime.Unix()
}

// sparse reports that a missing file is missing because of a sparse checkout.
func (x *gitIndex) sparse(path string) bool {
	e, ok := x.at(path)
	return ok && e.flags()&flagExtended != 0 && binary.BigEndian.Uint16(e.head[62:])&skipWorktree != 0
}

// fill makes the entries of a missing index from HEAD's tree.
func (x *gitIndex) fill(r *repository, tree hash) error {
	err := r.walk(tree, "", func(path string, e entry) {
		x.entries = append(x.entries, newEntry(&change{path: path, new: e}))
	})
	slices.SortFunc(x.entries, func(a, b indexEntry) int { return strings.Compare(string(a.name), string(b.name)) })
	return err
}
