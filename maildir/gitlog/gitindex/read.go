package gitindex

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
)

// All streams the entries in their order; an Entry is valid until the next one. err is set where it
// ends early: ErrDamaged, ErrConflicts, ErrForm.
func (x *Index) All(err *error) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if x.file == nil {
			return
		}
		in := &reader{sum: sha1.New()}
		var from io.Reader = io.NewSectionReader(x.file, 12, x.size-12-20)
		if !x.isVerified() {
			head := make([]byte, 12)
			if _, *err = x.file.ReadAt(head, 0); *err != nil {
				return
			}
			in.sum.Write(head)
			from = io.TeeReader(from, in.sum)
		}
		in.Reader = bufio.NewReaderSize(from, bufferSize)
		for range x.Count {
			e, rerr := in.next()
			if rerr != nil {
				*err = damaged(rerr)
				return
			}
			if !yield(e) {
				return
			}
		}
		*err = damaged(x.readTrailer(in))
	}
}

// isVerified reports that the checksum is known to be right, as it is of an index that Fill was
// given.
func (x *Index) isVerified() bool { return !x.Seen.Exists || x.Seen.Same(*x.verified) }

// damaged makes ErrDamaged of the errors that say that the content is not as it must be.
func damaged(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, bufio.ErrBufferFull) {
		return ErrDamaged
	}
	return err
}

// readTrailer reads what follows the entries and compares the checksum.
func (x *Index) readTrailer(in *reader) error {
	if err := x.readExtensions(in); err != nil {
		return err
	}
	if in.disorder {
		return ErrDamaged
	}
	if x.isVerified() {
		return nil
	}
	if sum := [20]byte(in.sum.Sum(nil)); sum != x.Seen.Sum && x.Seen.Sum != [20]byte{} {
		return ErrDamaged
	}
	*x.verified = x.Seen
	return nil
}

// readExtensions keeps how conflicts were resolved and skips the others; ErrForm where one must be
// known.
func (x *Index) readExtensions(in *reader) error {
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
			return fmt.Errorf("extension %q: %w", name, ErrForm)
		}
		var data bytes.Buffer
		var to io.Writer = io.Discard
		if name == "REUC" && size <= maxExtension {
			to = &data
		}
		if n, err := io.CopyN(to, in, size); n < size {
			return err
		}
		if to == &data {
			x.undo = data.Bytes()
		}
	}
}

// reader reads entries.
type reader struct {
	*bufio.Reader
	sum      hash.Hash
	last     []byte // name of the last entry
	skip     int    // bytes of the last entry
	disorder bool   // the names are not in order: new ones would not be where they belong
}

// next reads an entry.
func (in *reader) next() (e Entry, err error) {
	if _, err := in.Discard(in.skip); err != nil {
		return e, err
	}
	in.skip = 0
	b, err := in.Peek(atMore)
	if err != nil {
		return e, err
	}
	n, flags := atMore, binary.BigEndian.Uint16(b[atFlags:])
	if flags&flagExtended != 0 {
		n += 2
	}
	if flags&flagStages != 0 {
		return e, ErrConflicts
	}
	size := int(flags & flagName)
	if size == flagName { // it is at least so long
		if size, err = in.nameSize(n); err != nil {
			return e, err
		}
	}
	in.skip = (n + size + 8) &^ 7
	if b, err = in.Peek(in.skip); err != nil {
		return e, err
	}
	e = Entry{Name: b[n : n+size : n+size], head: b[:n:n], raw: b}
	in.disorder = in.disorder || bytes.Compare(in.last, e.Name) >= 0
	in.last = append(in.last[:0], e.Name...)
	return e, nil
}

// nameSize finds the end of a long name that begins at a place.
func (in *reader) nameSize(from int) (int, error) {
	for size := from + flagName; ; size *= 2 {
		size = min(size, bufferSize)
		b, err := in.Peek(size)
		if i := bytes.IndexByte(b[min(from, len(b)):], 0); i >= 0 {
			return i, nil
		}
		if err != nil {
			return 0, err
		}
		if size == bufferSize {
			return 0, ErrDamaged
		}
	}
}
