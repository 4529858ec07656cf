package maildir

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io/fs"
	"strings"
	"time"
	"unsafe"
)

// claimCache is what a reading of the claim files left for the next one. Nothing depends on it: what it says of a file
// counts only while the file's stat is the same, and a folder need not be listed only while the folder's is. A tree that
// somebody else made cannot bring one along that counts: nobody else can tell the inodes and ctimes of a checkout.
//
// On disk: claimCacheHead, the CRC-32 of what follows, then the folders: path, stat, names of the folders in it, files.
// Numbers are varints, or eight bytes each in a stat; texts have their length before them. What does not read well is no cache.
type claimCache struct {
	folders map[string]*claimFolder
}

const (
	claimCacheHead = "mailtree claims 1\n" // another number when ParseClaim begins to take more, or less
	claimCacheMax  = 64 << 20              // bytes
	keepClaimFiles = 500                   // fewer are read in less than 3 ms
	keepNews       = 64                    // fewer files are opened again in less time than the cache is written
)

// readClaimCache returns what an earlier reading kept; nil for nothing.
func (t *Tree) readClaimCache() *claimCache {
	data, _, err := t.Read(claimCachePath, claimCacheMax)
	body, ok := bytes.CutPrefix(data, []byte(claimCacheHead))
	if err != nil || !ok || len(body) < 5 || crc32.ChecksumIEEE(body[4:]) != binary.LittleEndian.Uint32(body) {
		return nil
	}
	r := &cacheReader{s: unsafe.String(&body[4], len(body)-4)} // nobody has the bytes but this text
	c := &claimCache{map[string]*claimFolder{}}
	for r.s != "" && !r.bad {
		f := r.folder()
		c.folders[f.path] = f
	}
	if r.bad {
		return nil
	}
	return c
}

// folder returns what is in the folder, if that can be told by its stat.
func (c *claimCache) folder(p string, st FileStat) *claimFolder {
	if c == nil || c.folders[p] == nil || c.folders[p].stat != st {
		return nil
	}
	return c.folders[p]
}

// finder returns a function that finds what is known of a file in the folder; nil for nothing. It is quickest when the
// files are asked for in the order that they were listed in before.
func (c *claimCache) finder(p string) func(name string) *claimEntry {
	if c == nil || c.folders[p] == nil {
		return func(string) *claimEntry { return nil }
	}
	files, next := c.folders[p].files, 0
	var index map[string]int
	return func(name string) *claimEntry {
		for i := next; i < min(next+4, len(files)); i++ {
			if files[i].name == name {
				next = i + 1
				return &files[i]
			}
		}
		if index == nil {
			index = make(map[string]int, len(files))
			for i := range files {
				index[files[i].name] = i
			}
		}
		i, ok := index[name]
		if !ok {
			return nil
		}
		next = i + 1
		return &files[i]
	}
}

// keep writes the cache where that is worth it. It may fail: the next reading is slower then.
func (s *claimScan) keep() {
	if s.files < keepClaimFiles || s.news < keepNews {
		return
	}
	w := &cacheWriter{}
	for i := range s.dirs {
		f := &s.dirs[i]
		if !settled(f.stat, s.start) {
			f.stat = FileStat{}
		}
		w.folder(f)
	}
	out := append([]byte(claimCacheHead), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(out[len(claimCacheHead):], crc32.ChecksumIEEE(w.b))
	_ = s.t.writeRun(claimCachePath, append(out, w.b...))
}

type cacheWriter struct{ b []byte }

func (w *cacheWriter) num(n int)     { w.b = binary.AppendUvarint(w.b, uint64(n)) }
func (w *cacheWriter) fixed(n int64) { w.b = binary.LittleEndian.AppendUint64(w.b, uint64(n)) }
func (w *cacheWriter) text(s string) { w.num(len(s)); w.b = append(w.b, s...) }

func (w *cacheWriter) stat(s FileStat) {
	for _, n := range []int64{int64(s.Mode), s.Size, s.MTime, s.CTime, int64(s.Inode)} {
		w.fixed(n)
	}
}

func (w *cacheWriter) folder(f *claimFolder) {
	w.text(f.path)
	w.stat(f.stat)
	w.num(len(f.subs))
	for _, s := range f.subs {
		w.text(s)
	}
	w.num(len(f.files))
	for i := range f.files {
		e := &f.files[i]
		w.num(bit(e.released))
		w.text(e.name)
		w.stat(e.stat)
		w.text(e.claim)
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// writeClaim is the claim as the cache has it.
func writeClaim(c *Claim) string {
	w := cacheWriter{make([]byte, 0, 32+len(c.Pattern)+len(c.Agent)+len(c.Reason))}
	w.num(bit(c.Exclusive))
	w.fixed(c.Created.UnixMicro())
	w.fixed(c.Expires.UnixMicro())
	w.text(c.Pattern)
	w.text(c.Agent)
	w.text(c.Reason)
	return string(w.b)
}

// readClaim is the way back; false where the text is none of writeClaim's.
func readClaim(s string, c *Claim) bool {
	r := cacheReader{s: s}
	c.Exclusive = r.num() == 1
	c.Created, c.Expires = time.UnixMicro(r.fixed()).UTC(), time.UnixMicro(r.fixed()).UTC()
	c.Pattern, c.Agent, c.Reason = r.text(), r.text(), r.text()
	return !r.bad && r.s == ""
}

// cacheReader takes one value after the other off s; bad once one was not there.
type cacheReader struct {
	s   string
	bad bool
}

func (r *cacheReader) fail() { r.bad, r.s = true, "" }

// num is a number; where it is to count something in s, it counts no more than s has bytes.
func (r *cacheReader) num() int {
	var n uint64
	for i := 0; i < len(r.s) && i < 5; i++ {
		n |= uint64(r.s[i]&0x7f) << (7 * i)
		if r.s[i] < 0x80 {
			if r.s = r.s[i+1:]; n > uint64(len(r.s))+1 {
				break
			}
			return int(n)
		}
	}
	r.fail()
	return 0
}

func (r *cacheReader) fixed() (n int64) {
	if len(r.s) < 8 {
		r.fail()
		return 0
	}
	for i := range 8 {
		n |= int64(r.s[i]) << (8 * i)
	}
	r.s = r.s[8:]
	return n
}

func (r *cacheReader) text() string {
	n := r.num()
	if n > len(r.s) {
		r.fail()
		return ""
	}
	s := r.s[:n]
	r.s = r.s[n:]
	return s
}

func (r *cacheReader) stat() (s FileStat) {
	s.Mode = fs.FileMode(r.fixed())
	s.Size, s.MTime, s.CTime, s.Inode = r.fixed(), r.fixed(), r.fixed(), uint64(r.fixed())
	return s
}

func (r *cacheReader) folder() *claimFolder {
	f := &claimFolder{path: r.text(), stat: r.stat()}
	for range r.num() {
		f.subs = append(f.subs, r.name())
	}
	n := min(r.num(), maxClaimFiles)
	f.files = make([]claimEntry, n)
	for i := range f.files {
		if r.bad {
			break
		}
		f.files[i] = claimEntry{released: r.num() == 1, name: r.name(), stat: r.stat(), claim: r.text()}
	}
	return f
}

// name is one element of a path.
func (r *cacheReader) name() string {
	s := r.text()
	if s == "" || strings.Contains(s, "/") {
		r.fail()
	}
	return s
}
