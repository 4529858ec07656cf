package gitindex

import (
	"bufio"
	"crypto/sha1"
	"encoding/binary"
	"hash"
	"io"
	"os"
	"slices"
	"strings"
)

// Change is what the next index has of a path.
type Change struct {
	Path     string
	Mode     uint32 // as tree objects write it; 0: there is no entry
	Hash     [20]byte
	Stat     Stat
	Replaces bool // there is probably an entry now: where that is right, one pass is enough
}

// moduleMode is the mode of a module, whose entry is a commit.
const moduleMode = 0o160000

// Rewrite writes the index with changes made, which are sorted by path, to f from its beginning,
// and returns its checksum. What was at a changed path or below it goes, and so does a file where a
// folder of a new path is. Of the entries that stay, racy is called with those whose file may have
// changed in the second in which the index was written: they look clean for ever once an index
// bears a later time.
//
// The number of entries stands at the beginning, so it is guessed first: a wrong guess takes
// another pass.
func (x *Index) Rewrite(f *os.File, changes []Change, racy func(Entry)) (sum []byte, err error) {
	gone := 0
	for _, c := range changes {
		if c.Replaces {
			gone++
		}
	}
	for {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		if err := f.Truncate(0); err != nil {
			return nil, err
		}
		o := newRewriting(changes)
		o.Writer = NewWriter(f, x.Version, max(x.Count+len(o.adds)-gone, 0))
		if err := o.run(x, racy); err != nil {
			return nil, err
		}
		if o.dropped == gone {
			return o.Finish(x.undo)
		}
		gone = o.dropped
	}
}

// rewriting makes of an index the next one.
type rewriting struct {
	*Writer
	cuts    []cut // what is dropped, in order
	adds    []Change
	dropped int
}

// cut is a range of names: from the first, less than the second.
type cut struct{ from, to string }

func newRewriting(changes []Change) *rewriting {
	o := &rewriting{}
	drop := func(from, to string) { o.cuts = append(o.cuts, cut{from, to}) }
	folders := map[string]bool{"": true}
	for _, c := range changes {
		drop(c.Path, c.Path+"\x00")
		drop(c.Path+"/", c.Path+"0") // '0' comes after '/': all that was below it
		if c.Mode == 0 {
			continue
		}
		for dir := parent(c.Path); !folders[dir]; dir = parent(dir) {
			folders[dir] = true
			drop(dir, dir+"\x00") // a file where there is a folder now
		}
		o.adds = append(o.adds, c)
	}
	slices.SortFunc(o.cuts, func(a, b cut) int { return strings.Compare(a.from, b.from) })
	return o
}

func parent(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }

// run writes the entries.
func (o *rewriting) run(x *Index, racy func(Entry)) (err error) {
	for e := range x.All(&err) {
		for len(o.adds) > 0 && o.adds[0].Path < string(e.Name) {
			o.addNext()
		}
		for len(o.cuts) > 0 && o.cuts[0].to <= string(e.Name) {
			o.cuts = o.cuts[1:]
		}
		if len(o.cuts) > 0 && o.cuts[0].from <= string(e.Name) {
			o.dropped++
			continue
		}
		if x.Seen.Exists && e.mtime() >= uint32(x.Seen.Stat.MTime.Unix()) && e.Mode() != moduleMode {
			racy(e)
		}
		o.addEntry(e)
	}
	for err == nil && len(o.adds) > 0 {
		o.addNext()
	}
	return err
}

func (o *rewriting) addNext() {
	o.Add(o.adds[0])
	o.adds = o.adds[1:]
}

// Writer writes an index file. NewWriter makes one, Finish ends it; errors come with Finish.
type Writer struct {
	to      io.Writer
	sum     hash.Hash
	out     *bufio.Writer
	scratch []byte
}

// NewWriter begins an index of count entries.
func NewWriter(to io.Writer, version uint32, count int) *Writer {
	w := &Writer{to: to, sum: sha1.New()}
	w.out = bufio.NewWriterSize(io.MultiWriter(to, w.sum), bufferSize)
	w.out.WriteString("DIRC")
	w.out.Write(binary.BigEndian.AppendUint32(nil, version))
	w.out.Write(binary.BigEndian.AppendUint32(nil, uint32(count)))
	return w
}

// Add writes the next entry, in the order of names.
func (w *Writer) Add(c Change) { w.addEntry(newEntry(c)) }

func (w *Writer) addEntry(e Entry) {
	if e.raw == nil {
		w.scratch = append(append(w.scratch[:0], e.head...), e.Name...)
		e.raw = append(w.scratch, make([]byte, 8-len(w.scratch)%8)...)
	}
	w.out.Write(e.raw)
}

// Finish writes what follows the entries: how conflicts were resolved, where undo says so, and the
// checksum, which it returns.
func (w *Writer) Finish(undo []byte) (sum []byte, err error) {
	if len(undo) > 0 {
		w.out.WriteString("REUC")
		w.out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(undo))))
		w.out.Write(undo)
	}
	if err := w.out.Flush(); err != nil { // which tells any error before
		return nil, err
	}
	sum = w.sum.Sum(nil)
	_, err = w.to.Write(sum)
	return sum, err
}
