package object

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// pack is a pack file being written: whole objects, no deltas (those are for the maintenance at
// idle). Format: gitformat-pack(5), version 2 for both files.
type pack struct {
	dir     string // where it goes
	tmp     string
	file    *os.File
	out     *bufio.Writer
	offset  int64
	items   []packed
	scratch bytes.Buffer
	deflate *zlib.Writer
}

type packed struct {
	hash   Hash
	crc    uint32
	offset int64
}

func newPack(dir, tmp string) (*pack, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	f, err := newTemp(tmp)
	if err != nil {
		return nil, err
	}
	p := &pack{dir: dir, tmp: tmp, file: f, out: bufio.NewWriterSize(f, 1<<16), offset: 12}
	p.deflate, _ = zlib.NewWriterLevel(&p.scratch, zlib.BestSpeed)
	_, err = p.out.Write(make([]byte, 12)) // the header needs the count: written last
	if err != nil {
		p.discard()
	}
	return p, err
}

func (p *pack) add(x Object) error {
	p.scratch.Reset()
	p.scratch.Write(packHeader(x.Kind, int64(len(x.Data))))
	p.deflate.Reset(&p.scratch)
	if _, err := p.deflate.Write(x.Data); err != nil {
		return err
	}
	if err := p.deflate.Close(); err != nil {
		return err
	}
	p.items = append(p.items, packed{x.Hash, crc32.ChecksumIEEE(p.scratch.Bytes()), p.offset})
	p.offset += int64(p.scratch.Len())
	_, err := p.out.Write(p.scratch.Bytes())
	return err
}

// packHeader is what stands before an object.
func packHeader(k Kind, length int64) (head []byte) {
	size := uint64(length)
	b := byte(k)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		head = append(head, b|0x80)
		b = byte(size & 0x7f)
	}
	return append(head, b)
}

// addFile adds the blob of a file of size bytes, unless have has it. After an error the pack is as
// before.
func (p *pack) addFile(f io.Reader, size int64, have map[Hash]struct{}) (Hash, error) {
	if err := p.out.Flush(); err != nil {
		return Hash{}, err
	}
	sum, crc := sha1.New(), crc32.NewIEEE()
	sum.Write(header(KindBlob, size))
	to := io.MultiWriter(p.file, crc)
	_, err := to.Write(packHeader(KindBlob, size))
	p.deflate.Reset(to)
	var h Hash
	if err == nil {
		h, err = copied(io.MultiWriter(sum, p.deflate), f, size, sum)
	}
	if err = errors.Join(err, p.deflate.Close()); err == nil {
		if _, ok := have[h]; !ok {
			p.items = append(p.items, packed{h, crc.Sum32(), p.offset})
			p.offset, err = p.file.Seek(0, io.SeekCurrent)
			return h, err
		}
	}
	_, serr := p.file.Seek(p.offset, io.SeekStart)
	return h, errors.Join(err, p.file.Truncate(p.offset), serr)
}

// finishPack completes the pack and its index below temporary names. The index is renamed first: a
// pack without index makes go-git fail on every packed object
// (https://github.com/go-git/go-git/issues/2392), while an index without pack is nothing to it and
// to Git.
func (p *pack) finishPack() ([]rename, error) {
	sum, err := p.seal()
	ready := []rename{{p.file.Name(), filepath.Join(p.dir, fmt.Sprintf("pack-%x.pack", sum))}}
	if err = errors.Join(err, p.file.Chmod(0o444), p.file.Close()); err != nil {
		return ready, err
	}
	idx, err := newTemp(p.tmp)
	if err != nil {
		return ready, err
	}
	ready = []rename{{idx.Name(), filepath.Join(p.dir, fmt.Sprintf("pack-%x.idx", sum))}, ready[0]}
	_, err = idx.Write(p.index(sum))
	return ready, errors.Join(err, idx.Chmod(0o444), idx.Close())
}

// seal writes the header and the checksum at the end.
func (p *pack) seal() ([]byte, error) {
	if err := p.out.Flush(); err != nil {
		return nil, err
	}
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(p.items)))
	if _, err := p.file.WriteAt(head, 0); err != nil {
		return nil, err
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	h := sha1.New()
	if _, err := io.Copy(h, p.file); err != nil {
		return nil, err
	}
	sum := h.Sum(nil)
	_, err := p.file.Write(sum)
	return sum, err
}

// index is the content of the .idx file.
func (p *pack) index(sum []byte) []byte {
	slices.SortFunc(p.items, func(a, b packed) int {
		return cmp.Or(bytes.Compare(a.hash[:], b.hash[:]), cmp.Compare(a.offset, b.offset))
	})
	b := []byte("\xfftOc\x00\x00\x00\x02")
	n := 0
	for first := range 256 {
		for n < len(p.items) && int(p.items[n].hash[0]) <= first {
			n++
		}
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	for _, x := range p.items {
		b = append(b, x.hash[:]...)
	}
	for _, x := range p.items {
		b = binary.BigEndian.AppendUint32(b, x.crc)
	}
	var far []byte
	for _, x := range p.items {
		if x.offset < 1<<31 {
			b = binary.BigEndian.AppendUint32(b, uint32(x.offset))
			continue
		}
		b = binary.BigEndian.AppendUint32(b, 1<<31|uint32(len(far)/8))
		far = binary.BigEndian.AppendUint64(far, uint64(x.offset))
	}
	b = append(append(b, far...), sum...)
	own := sha1.Sum(b)
	return append(b, own[:]...)
}

func (p *pack) discard() {
	p.file.Close()
	os.Remove(p.file.Name())
}
