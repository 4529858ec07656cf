package gitlog

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"mailtree/maildir/tree"
)

// graphFile is below .git: of each commit its parents, its time and what it touched, so that a search
// of a long history reads the commits that it shows and no others. Git's commit-graph serves the same
// end; but its filters tell false one time in a hundred, and what operations say is not in them.
//
// The file is a row of records, parents before children:
//
//	uint32  bytes of the record
//	[20]    name of the commit
//	int64   its time, in seconds since 1970
//	uint32  how many parents, and of each the number of its record, from 0
//	uint32  each key, hashed: nothing where there are more than maxKeys
//	uint32  CRC-32C of the record, begun with that of the record before
//
// A record is believed up to the first whose checksum is wrong, and counts only where HEAD leads to
// it: a graph that is torn, cut or of another history makes a search slower, never wrong.
const graphFile = "mailtree-graph"

// maxGraph bounds the file: some ten million commits. A larger one is not read, and begun anew.
const maxGraph = 1 << 30

// maxKeys bounds a record: a commit that touched more is looked at whatever is searched.
const maxKeys = 1 << 16

const (
	graphName    = 4                     // where in a record the parts begin
	graphMade    = graphName + nameBytes //
	graphParents = graphMade + 8
	graphLeast   = graphParents + 4 + 4 // bytes of a record without parents and keys
	nameBytes    = len(hash{})
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// graph is the content of a graphFile. The zero value is empty. It is not safe for concurrent use.
type graph struct {
	data    []byte
	starts  []int // of the records, and where the last one ends
	numbers map[hash]int
}

// graphEnd is what is needed to append to a graph.
type graphEnd struct {
	name    hash   // of the last commit
	records int    // so many
	bytes   int64  // of the file
	sum     uint32 // of the last record
}

// readGraph reads what can be believed of a graph; that is nothing where the file cannot be read.
func readGraph(file string) *graph {
	data := readWhole(file)
	g := &graph{starts: make([]int, 1, len(data)/100+1)}
	sum := uint32(0)
	for at := 0; len(data)-at >= graphLeast; {
		n := int(binary.BigEndian.Uint32(data[at:]))
		if n < graphLeast || n > len(data)-at {
			break
		}
		end := at + n
		parents := uint64(binary.BigEndian.Uint32(data[at+graphParents:]))
		sum = crc32.Update(sum, castagnoli, data[at:end-4])
		if sum != binary.BigEndian.Uint32(data[end-4:]) || uint64(graphLeast)+4*parents > uint64(n) {
			break
		}
		at = end
		g.starts = append(g.starts, at)
	}
	g.data = data[:g.starts[g.len()]]
	return g
}

// readWhole is the content of a regular file; nothing where it cannot be read.
func readWhole(file string) []byte {
	f, err := openRegular(file, maxGraph)
	if err != nil {
		return nil
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil
	}
	data := make([]byte, fi.Size())
	n, _ := io.ReadFull(f, data)
	return data[:n]
}

func (g *graph) len() int { return max(0, len(g.starts)-1) }

func (g *graph) recordAt(i int) []byte { return g.data[g.starts[i]:g.starts[i+1]] }

func (g *graph) name(i int) hash { return hash(g.recordAt(i)[graphName:graphMade]) }

func (g *graph) made(i int) time.Time {
	return time.Unix(int64(binary.BigEndian.Uint64(g.recordAt(i)[graphMade:])), 0).UTC()
}

// parents calls fn with the number of each parent.
func (g *graph) parents(i int, fn func(int)) {
	r := g.recordAt(i)[graphParents:]
	for k := range binary.BigEndian.Uint32(r) {
		fn(int(binary.BigEndian.Uint32(r[4+4*k:])))
	}
}

// touches reports whether a commit may have one of the keys, or whether that is not known.
func (g *graph) touches(i int, keys *keySet) bool {
	r := g.recordAt(i)[graphParents:]
	r = r[4+4*binary.BigEndian.Uint32(r) : len(r)-4]
	if len(r) == 0 {
		return true
	}
	for ; len(r) > 0; r = r[4:] {
		if keys.hasKey(binary.BigEndian.Uint32(r)) {
			return true
		}
	}
	return false
}

// number is that of a commit, less than 0 where it is not in the graph.
func (g *graph) number(name hash) int {
	last := g.len() - 1
	if last < 0 || g.name(last) == name { // as a rule HEAD, or its parent
		return last
	}
	if g.numbers == nil {
		g.numbers = make(map[hash]int, g.len())
		for i := range g.len() {
			g.numbers[g.name(i)] = i
		}
	}
	if i, ok := g.numbers[name]; ok {
		return i
	}
	return -1
}

// endAfter is the end of the first n records.
func (g *graph) endAfter(n int) graphEnd {
	if n == 0 {
		return graphEnd{}
	}
	last := g.recordAt(n - 1)
	return graphEnd{
		name:    g.name(n - 1),
		records: n,
		bytes:   int64(g.starts[n]),
		sum:     binary.BigEndian.Uint32(last[len(last)-4:]),
	}
}

// append adds the record of a commit to data, which are those that come after e.
func (e *graphEnd) append(data []byte, c *commit, parents []int, keys map[uint32]bool) []byte {
	if len(keys) > maxKeys {
		keys = nil
	}
	begin := len(data)
	data = binary.BigEndian.AppendUint32(data, uint32(graphLeast+4*len(parents)+4*len(keys)))
	data = append(data, c.name[:]...)
	data = binary.BigEndian.AppendUint64(data, uint64(c.made.Unix()))
	data = binary.BigEndian.AppendUint32(data, uint32(len(parents)))
	for _, p := range parents {
		data = binary.BigEndian.AppendUint32(data, uint32(p))
	}
	for k := range keys {
		data = binary.BigEndian.AppendUint32(data, k)
	}
	e.sum = crc32.Update(e.sum, castagnoli, data[begin:])
	data = binary.BigEndian.AppendUint32(data, e.sum)
	e.name, e.records, e.bytes = c.name, e.records+1, e.bytes+int64(len(data)-begin)
	return data
}

// errGraphCut: somebody has cut or removed the file.
var errGraphCut = errors.New("the graph was cut")

// write puts records to where e begins, in place of whatever is there and after it.
func (e graphEnd) write(file string, records []byte) error {
	f, st, err := tree.OpenPlain(file, os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer f.Close()
	switch {
	case st.Size < e.bytes:
		return errGraphCut
	case st.Size > e.bytes:
		if err := f.Truncate(e.bytes); err != nil {
			return err
		}
	}
	_, err = f.WriteAt(records, e.bytes)
	return err
}

// keySet are keys that are searched, hashed.
type keySet struct {
	all map[uint32]bool
	low [1 << 16]bool // those with these low bits: most others are told by that, at a tenth of the time
}

func newKeySet(keys []string) *keySet {
	s := &keySet{all: make(map[uint32]bool, len(keys))}
	for _, key := range keys {
		k := hashKey(key)
		s.all[k], s.low[uint16(k)] = true, true
	}
	return s
}

func (s *keySet) hasKey(k uint32) bool { return s.low[uint16(k)] && s.all[k] }

func hashKey(k string) uint32 { return crc32.Checksum([]byte(k), castagnoli) }
