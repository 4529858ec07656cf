package gitlog

import (
	"bufio"
	"crypto/sha1"
	"encoding/binary"
	"io"
	"os"
	"slices"
	"strings"
)

// indexWriter makes of an index the next one.
type indexWriter struct {
	*gitIndex
	files   *worktree
	mem     *memory
	out     *bufio.Writer
	cuts    []cut // what is dropped, in order
	add     []*change
	recent  map[string]fileStat
	scratch []byte
	dropped int
}

// cut is a range of names: from the first, less than the second.
type cut struct{ from, to string }

// with writes the index with the changes made, which are sorted by path, and returns its checksum and which of its
// entries may still be racy: they bear the present second and are known to be clean. The number of entries stands at
// the beginning, so it is guessed first: the entries that go are those of HEAD, unless somebody has staged something.
func (x *gitIndex) with(f *os.File, changes []*change, w *worktree, mem *memory) (sum []byte, recent map[string]fileStat, err error) {
	gone := 0
	for _, c := range changes {
		if c.old.isFile() {
			gone++
		}
	}
	for {
		o := &indexWriter{gitIndex: x, files: w, mem: mem, recent: map[string]fileStat{}}
		o.plan(changes)
		h := sha1.New()
		o.out = bufio.NewWriterSize(io.MultiWriter(f, h), indexBuffer)
		if err := o.write(max(x.count+len(o.add)-gone, 0)); err != nil {
			return nil, nil, err
		}
		if o.dropped == gone {
			sum = h.Sum(nil)
			_, err := f.Write(sum)
			return sum, o.recent, err
		}
		gone = o.dropped
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return nil, nil, err
		}
		if err := f.Truncate(0); err != nil {
			return nil, nil, err
		}
	}
}

// plan sorts out what goes and what comes.
func (o *indexWriter) plan(changes []*change) {
	dirs := map[string]bool{"": true}
	drop := func(from, to string) { o.cuts = append(o.cuts, cut{from, to}) }
	for _, c := range changes {
		drop(c.path, c.path+"\x00")
		drop(c.path+"/", c.path+"0") // '0' comes after '/': all that was below it
		if c.new.mode == 0 {
			continue
		}
		for dir := parent(c.path); !dirs[dir]; dir = parent(dir) {
			dirs[dir] = true
			drop(dir, dir+"\x00") // a file where there is a folder now
		}
		o.add = append(o.add, c)
	}
	slices.SortFunc(o.cuts, func(a, b cut) int { return strings.Compare(a.from, b.from) })
}

// write writes all but the checksum.
func (o *indexWriter) write(count int) (err error) {
	o.out.WriteString("DIRC")
	o.out.Write(binary.BigEndian.AppendUint32(nil, o.version))
	o.out.Write(binary.BigEndian.AppendUint32(nil, uint32(count)))
	for e := range o.all(&err) {
		for len(o.add) > 0 && o.add[0].path < string(e.name) {
			o.putEntry(o.next())
		}
		for len(o.cuts) > 0 && o.cuts[0].to <= string(e.name) {
			o.cuts = o.cuts[1:]
		}
		if len(o.cuts) > 0 && o.cuts[0].from <= string(e.name) {
			o.dropped++
			continue
		}
		o.settleEntry(e)
		o.putEntry(e)
	}
	if err != nil {
		return err
	}
	for len(o.add) > 0 {
		o.putEntry(o.next())
	}
	o.out.Write(appendExtension(nil, "REUC", o.undo))
	return o.out.Flush() // which tells any error before
}

// next takes the next entry to be added.
func (o *indexWriter) next() indexEntry {
	c := o.add[0]
	o.add = o.add[1:]
	if !c.stat.uncertain {
		o.recent[c.path] = c.stat
	}
	return newEntry(c)
}

func (o *indexWriter) putEntry(e indexEntry) {
	if e.raw == nil {
		o.scratch = append(append(o.scratch[:0], e.head...), e.name...)
		e.raw = append(o.scratch, make([]byte, 8-len(o.scratch)%8)...)
	}
	o.out.Write(e.raw)
}

func parent(path string) string {
	return path[:max(strings.LastIndexByte(path, '/'), 0)]
}

// settleEntry deals with a racy entry as Git does when it writes an index (racy-git(5)): an entry whose file changed
// in the second in which the index was written looks clean for ever once the index bears a later time. Where the content
// is another, the entry is made such that Git looks at it. Where it is the same the entry stays: one that Git does
// not believe makes git revert and git checkout say that a file has local changes, as they do not look at it themselves.
// Those that are ours and untouched since are not read. Where it cannot be told the entry is made so too.
func (o *indexWriter) settleEntry(e indexEntry) {
	if !o.seen.exists || e.mtime() < uint32(o.seen.stat.mtime.Unix()) || e.entry().mode == modeModule {
		return
	}
	now, err := o.files.stat(string(e.name))
	if err == nil {
		if st, ok := o.mem.recent[string(e.name)]; ok && e.holds(st) && now.sameStat(st) {
			o.recent[string(e.name)] = st
			return
		}
	}
	if transient(err) || err == nil && e.mayHold(now) && !o.has(e, now) {
		e.smudge()
	}
}

// has reports whether the file of an entry, which is in the given state, surely has the entry's content.
func (o *indexWriter) has(e indexEntry, st fileStat) bool {
	now, _, err := o.files.blob(string(e.name), st, &objects{dry: true})
	return err == nil && now.hash == e.entry().hash
}

func appendExtension(b []byte, name string, data []byte) []byte {
	if len(data) == 0 {
		return b
	}
	b = append(b, name...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	return append(b, data...)
}
