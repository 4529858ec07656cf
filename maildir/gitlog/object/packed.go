package object

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// packSet reads objects out of the packs of a repository. go-git reads a pack's whole index before
// it finds the first object, 20 MB where 100,000 commits are; this looks up what is asked for. What
// it cannot read (another version, a base that is elsewhere) it does not find: go-git is asked next.
type packSet struct {
	packs []*packFile
	bases map[base]content // contents that deltas may stand on
	bytes int              // of bases
	in    *bufio.Reader
	zip   io.ReadCloser
}

// base is where an object lies.
type base struct {
	pack *packFile
	at   int64
}

// content is an object of a pack.
type content struct {
	kind Kind
	data []byte
}

// packFile is one pack file and its index, of version 2.
type packFile struct {
	index, data *os.File
	fanout      [256]uint32
}

const (
	indexHead  = 8 + 256*4
	nameBytes  = 20
	basesBytes = 8 << 20
	maxObject  = 1 << 28 // bytes of an object
	maxChain   = 5000    // deltas upon another; Git makes at most 4095
)

var (
	errNotPacked = errors.New("not in a pack")
	errPackFile  = errors.New("damaged pack")
)

// openPacks opens the packs of the repository at git, as far as they can be opened.
func openPacks(git string) *packSet {
	s := &packSet{bases: map[base]content{}, in: bufio.NewReaderSize(nil, 4096)}
	names, _ := filepath.Glob(filepath.Join(git, "objects/pack/pack-*.idx"))
	for _, name := range names {
		if p, err := openPack(name); err == nil {
			s.packs = append(s.packs, p)
		}
	}
	return s
}

func openPack(name string) (*packFile, error) {
	index, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	p := &packFile{index: index}
	var head [indexHead]byte
	if _, err = index.ReadAt(head[:], 0); err == nil && string(head[:8]) != "\xfftOc\x00\x00\x00\x02" {
		err = errPackFile
	}
	if err == nil {
		p.data, err = os.Open(strings.TrimSuffix(name, ".idx") + ".pack")
	}
	if err != nil {
		index.Close()
		return nil, err
	}
	for i := range p.fanout {
		p.fanout[i] = binary.BigEndian.Uint32(head[8+4*i:])
	}
	return p, nil
}

func (s *packSet) close() {
	for _, p := range s.packs {
		p.index.Close()
		p.data.Close()
	}
}

// read returns an object of that kind. errNotPacked: no pack has it.
func (s *packSet) read(k Kind, h Hash) ([]byte, error) {
	for i, p := range s.packs {
		at, err := p.find(h)
		if errors.Is(err, errNotPacked) {
			continue
		}
		if err != nil {
			return nil, err
		}
		s.packs[0], s.packs[i] = p, s.packs[0] // where the next one is likely to be
		o, err := s.object(p, at)
		if err == nil && o.kind != k {
			err = fmt.Errorf("%s is a %s", h, o.kind)
		}
		return bytes.Clone(o.data), err
	}
	return nil, errNotPacked
}

// find looks an object up in the index: names are spread evenly, so that it reads where the name
// should be, and in halves where it is not.
func (p *packFile) find(h Hash) (at int64, err error) {
	lo, hi := uint32(0), p.fanout[h[0]]
	if h[0] > 0 {
		lo = p.fanout[h[0]-1]
	}
	const window = 128
	var names [window * nameBytes]byte
	guess := lo + uint32(uint64(binary.BigEndian.Uint32(h[1:5]))*uint64(hi-min(lo, hi))>>32)
	for lo < hi {
		first := max(lo, guess-min(guess, window/2))
		n := min(hi-first, window)
		if _, err := p.index.ReadAt(names[:n*nameBytes], indexHead+int64(first)*nameBytes); err != nil {
			return 0, err
		}
		name := func(i uint32) []byte { return names[i*nameBytes : (i+1)*nameBytes] }
		switch {
		case bytes.Compare(h[:], name(0)) < 0:
			hi = first
		case bytes.Compare(h[:], name(n-1)) > 0:
			lo = first + n
		default:
			for i := range n {
				if bytes.Equal(name(i), h[:]) {
					return p.offset(first + i)
				}
			}
			return 0, errNotPacked
		}
		guess = lo + (hi-lo)/2
	}
	return 0, errNotPacked
}

// offset is where in the pack the object lies that has that place in the index.
func (p *packFile) offset(i uint32) (int64, error) {
	total := int64(p.fanout[255])
	var b [8]byte
	small := indexHead + total*(nameBytes+4)
	if _, err := p.index.ReadAt(b[:4], small+int64(i)*4); err != nil {
		return 0, err
	}
	at := binary.BigEndian.Uint32(b[:4])
	if at>>31 == 0 {
		return int64(at), nil
	}
	_, err := p.index.ReadAt(b[:], small+total*4+int64(at&^(1<<31))*8)
	return int64(binary.BigEndian.Uint64(b[:])), err
}

// object reads what lies at a place of a pack: deltas are collected until there is something that
// they stand on, then applied.
func (s *packSet) object(p *packFile, at int64) (o content, err error) {
	type step struct {
		at    int64
		delta []byte
	}
	var steps []step
	for {
		if known, ok := s.bases[base{p, at}]; ok {
			o = known
			break
		}
		kind, below, data, err := s.readEntry(p, at)
		if err != nil {
			return o, err
		}
		if kind <= KindBlob {
			o = content{kind, data}
			s.keep(p, at, o)
			break
		}
		steps = append(steps, step{at, data})
		if len(steps) > maxChain {
			return o, errPackFile
		}
		at = below
	}
	for len(steps) > 0 {
		last := steps[len(steps)-1]
		if o.data, err = applyDelta(o.data, last.delta); err != nil {
			return o, err
		}
		s.keep(p, last.at, o)
		steps = steps[:len(steps)-1]
	}
	return o, nil
}

func (s *packSet) keep(p *packFile, at int64, o content) {
	if o.kind != KindTree { // the rest is read once
		return
	}
	if s.bytes += len(o.data); s.bytes > basesBytes {
		clear(s.bases)
		s.bytes = len(o.data)
	}
	s.bases[base{p, at}] = o
}

// Kinds of entries that are deltas, as pack files number them.
const (
	offsetDelta Kind = 6
	namedDelta  Kind = 7
)

// readEntry reads one entry of a pack; of a delta, where below lies what it stands on.
func (s *packSet) readEntry(p *packFile, at int64) (k Kind, below int64, data []byte, err error) {
	s.in.Reset(io.NewSectionReader(p.data, at, 1<<62-at))
	c, err := s.in.ReadByte()
	k = Kind(c >> 4 & 7)
	size := int64(c & 15)
	for shift := 4; err == nil && c&0x80 != 0 && shift < 60; shift += 7 {
		c, err = s.in.ReadByte()
		size |= int64(c&0x7f) << shift
	}
	switch {
	case err != nil:
	case size > maxObject:
		err = errPackFile
	case k == offsetDelta:
		below, err = readDistance(s.in)
		if below = at - below; err == nil && (below < 0 || below >= at) {
			err = errPackFile
		}
	case k == namedDelta:
		var h Hash
		if _, err = io.ReadFull(s.in, h[:]); err == nil {
			below, err = p.find(h)
		}
	case k < KindCommit || k > KindBlob:
		err = errNotPacked // a tag, which nobody here asks for
	}
	if err != nil {
		return k, 0, nil, err
	}
	data, err = s.inflate(size)
	return k, below, data, err
}

// readDistance reads how far before a delta the entry lies that it stands on.
func readDistance(in io.ByteReader) (int64, error) {
	c, err := in.ReadByte()
	n := int64(c & 0x7f)
	for i := 0; err == nil && c&0x80 != 0 && i < 8; i++ {
		c, err = in.ReadByte()
		n = (n+1)<<7 | int64(c&0x7f)
	}
	return n, err
}

func (s *packSet) inflate(size int64) (data []byte, err error) {
	if s.zip == nil {
		s.zip, err = zlib.NewReader(s.in)
	} else {
		err = s.zip.(zlib.Resetter).Reset(s.in, nil)
	}
	if err != nil {
		return nil, err
	}
	data = make([]byte, size)
	if _, err := io.ReadFull(s.zip, data); err != nil {
		return nil, err
	}
	if n, err := s.zip.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) { // its checksum is read at the end
		return nil, errPackFile
	}
	return data, nil
}

// applyDelta makes an object of the one that a delta stands on.
func applyDelta(from, delta []byte) ([]byte, error) {
	was, n := binary.Uvarint(delta)
	if n <= 0 || was != uint64(len(from)) {
		return nil, errPackFile
	}
	delta = delta[n:]
	size, n := binary.Uvarint(delta)
	if n <= 0 || size > maxObject {
		return nil, errPackFile
	}
	to := make([]byte, 0, size)
	for delta = delta[n:]; len(delta) > 0; {
		c := delta[0]
		delta = delta[1:]
		if c&0x80 == 0 {
			if c == 0 || int(c) > len(delta) {
				return nil, errPackFile
			}
			to, delta = append(to, delta[:c]...), delta[c:]
			continue
		}
		var args [7]uint64
		for i := range args {
			if c>>i&1 == 0 {
				continue
			}
			if len(delta) == 0 {
				return nil, errPackFile
			}
			args[i], delta = uint64(delta[0]), delta[1:]
		}
		at, length := args[0]|args[1]<<8|args[2]<<16|args[3]<<24, args[4]|args[5]<<8|args[6]<<16
		if length == 0 {
			length = 1 << 16
		}
		if at+length > uint64(len(from)) || uint64(len(to))+length > size {
			return nil, errPackFile
		}
		to = append(to, from[at:at+length]...)
	}
	if uint64(len(to)) != size {
		return nil, errPackFile
	}
	return to, nil
}
