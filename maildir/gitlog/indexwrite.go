package gitlog

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// with returns the content of the index with the changes made, and which of its entries may still be racy: they
// bear the present second and are known to be clean.
func (x *gitIndex) with(changes []*change, w *worktree, mem *memory) (data []byte, recent map[string]fileStat) {
	recent = x.settle(w, mem)
	drop := make([]bool, len(x.entries))
	cut := func(from, to string) {
		for i := x.find(from); i < len(x.entries) && string(x.entries[i].name) < to; i++ {
			drop[i] = true
		}
	}
	dirty := map[string]bool{"": true}
	replaced := map[string]bool{}
	var add []indexEntry
	for _, c := range changes {
		cut(c.path, c.path+"\x00")
		cut(c.path+"/", c.path+"0") // '0' comes after '/': all that was below it
		replaced[c.path] = true
		for dir := parent(c.path); !dirty[dir]; dir = parent(dir) {
			dirty[dir] = true
			if c.new.mode != 0 {
				cut(dir, dir+"\x00") // a file where there is a folder now
			}
		}
		if c.new.mode != 0 {
			add = append(add, newEntry(c))
			if !c.stat.uncertain {
				recent[c.path] = c.stat
			}
		}
	}
	slices.SortFunc(add, func(a, b indexEntry) int { return bytes.Compare(a.name, b.name) })
	return x.encode(drop, add, editCacheTree(x.tree, dirty, replaced)), recent
}

func parent(path string) string {
	return path[:max(strings.LastIndexByte(path, '/'), 0)]
}

// settle deals with racy entries as Git does when it writes an index (racy-git(5)): an entry whose file changed
// in the second in which the index was written looks clean for ever once the index bears a later time. Those
// that are ours and untouched since are kept, of the others Git shall look at the content.
func (x *gitIndex) settle(w *worktree, mem *memory) map[string]fileStat {
	recent := map[string]fileStat{}
	if !x.seen.exists {
		return recent
	}
	written := uint32(x.seen.stat.mtime.Unix())
	for _, e := range x.entries {
		if binary.BigEndian.Uint32(e.head[8:]) < written || e.entry().mode == modeModule {
			continue
		}
		if st, ok := mem.recent[string(e.name)]; ok && e.holds(st) {
			if now, err := w.stat(string(e.name)); err == nil && now.same(st) {
				recent[string(e.name)] = st
				continue
			}
		}
		e.smudge()
	}
	return recent
}

// encode writes the index: header, entries less the dropped, extensions, checksum.
func (x *gitIndex) encode(drop []bool, add []indexEntry, tree []byte) []byte {
	size, count := 12+20, len(add)
	for i, e := range x.entries {
		if !drop[i] {
			count++
			size += len(e.head) + len(e.name) + 16
		}
	}
	for _, e := range add {
		size += len(e.head) + len(e.name) + 16
	}
	b := make([]byte, 0, size+len(tree)+len(x.undo)+16)
	b = append(b, "DIRC"...)
	b = binary.BigEndian.AppendUint32(b, x.version)
	b = binary.BigEndian.AppendUint32(b, uint32(count))
	var before []byte
	put := func(e indexEntry) {
		b = x.appendEntry(b, e, before)
		before = e.name
	}
	for i, e := range x.entries {
		for len(add) > 0 && bytes.Compare(add[0].name, e.name) < 0 {
			put(add[0])
			add = add[1:]
		}
		if !drop[i] {
			put(e)
		}
	}
	for _, e := range add {
		put(e)
	}
	b = appendExtension(b, "TREE", tree)
	b = appendExtension(b, "REUC", x.undo)
	sum := sha1.Sum(b)
	return append(b, sum[:]...)
}

func (x *gitIndex) appendEntry(b []byte, e indexEntry, before []byte) []byte {
	if x.version == 4 {
		shared := 0
		for shared < len(before) && shared < len(e.name) && before[shared] == e.name[shared] {
			shared++
		}
		b = appendOffset(append(b, e.head...), len(before)-shared)
		return append(append(b, e.name[shared:]...), 0)
	}
	if e.raw != nil {
		return append(b, e.raw...)
	}
	b = append(append(b, e.head...), e.name...)
	return append(b, make([]byte, 8-(len(e.head)+len(e.name))%8)...)
}

// appendOffset is the variable-width number of pack offsets.
func appendOffset(b []byte, n int) []byte {
	var buf [10]byte
	i := len(buf) - 1
	buf[i] = byte(n & 0x7f)
	for n >>= 7; n > 0; n >>= 7 {
		n--
		i--
		buf[i] = 0x80 | byte(n&0x7f)
	}
	return append(b, buf[i:]...)
}

func appendExtension(b []byte, name string, data []byte) []byte {
	if len(data) == 0 {
		return b
	}
	b = append(b, name...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
	return append(b, data...)
}

// editCacheTree invalidates the folders that changed in the cache-tree extension, as `git add` does: the others
// keep saving Git the reading of their trees. What lies in a folder that was replaced or removed is left out.
// A damaged extension is dropped.
func editCacheTree(data []byte, dirty, replaced map[string]bool) []byte {
	if len(data) == 0 {
		return nil
	}
	out, rest, ok := editCacheNode(make([]byte, 0, len(data)), data, "", dirty, replaced)
	if !ok || len(rest) > 0 {
		return nil
	}
	return out
}

func editCacheNode(out, in []byte, dir string, dirty, replaced map[string]bool) (o, rest []byte, ok bool) {
	name, in, ok1 := bytes.Cut(in, []byte{0})
	count, in, ok2 := bytes.Cut(in, []byte{' '})
	below, in, ok3 := bytes.Cut(in, []byte{'\n'})
	entries, err1 := strconv.Atoi(string(count))
	kids, err2 := strconv.Atoi(string(below))
	if !ok1 || !ok2 || !ok3 || err1 != nil || err2 != nil || kids < 0 || entries >= 0 && len(in) < len(hash{}) {
		return nil, nil, false
	}
	path := string(name)
	if dir != "" {
		path = dir + "/" + path
	}
	var sum []byte
	if entries >= 0 {
		sum, in = in[:len(hash{})], in[len(hash{}):]
	}
	if dirty[path] {
		entries, sum = -1, nil
	}
	var subtrees []byte
	kept := 0
	for range kids {
		mark := len(subtrees)
		if subtrees, in, ok = editCacheNode(subtrees, in, path, dirty, replaced); !ok {
			return nil, nil, false
		}
		if len(subtrees) > mark {
			kept++
		}
	}
	if replaced[path] {
		return out, in, true
	}
	out = append(append(out, name...), 0)
	out = append(strconv.AppendInt(out, int64(entries), 10), ' ')
	out = append(strconv.AppendInt(out, int64(kept), 10), '\n')
	return append(append(out, sum...), subtrees...), in, true
}
