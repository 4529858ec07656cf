// Package spool limits how much memory and disk space mail from other domains uses while the gateway is receiving it.
//
//	Spool        a server's budgets for bytes in memory and for bytes in temporary files
//	Incoming     a message that is being received, in a small buffer and then in a temporary file
//	Load         loads a received message into memory while the server parses and stores it
//	file.go      temporary files without a name
//
// While a message is being received, it uses BufferBytes of memory, regardless of its size. Once complete, the
// message is loaded into memory as a whole. At most Parses messages are loaded at a time, and the others wait in
// their files.
package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
)

// Limits on a Spool, in bytes. MemoryLimit has room for Parses messages of maxMessage bytes, and for the buffers of
// messages that are being received.
const (
	BufferBytes = 64 << 10
	MemoryLimit = 64 << 20
	FileLimit   = 512 << 20 // the limit for the whole server

	maxMessage = 26 << 20  // a message of 25 MiB and the fields that the server writes above it
	minFree    = 128 << 20 // kept free on the disk, because storing a message takes about three times its size
	step       = 1 << 20   // files reserve bytes from the budget in multiples of this size
)

// Parses is the maximum number of messages that are fully loaded into memory at a time.
const Parses = 2

// ErrNoRoom means that a budget is exhausted or the disk is nearly full. The sender may try again later.
var ErrNoRoom = errors.New("not enough memory or disk space for the message")

// Spool contains one server's budgets. It is safe for concurrent use.
type Spool struct {
	dir    string
	free   func(dir string) (int64, error) // diskFree, except in tests
	parses chan struct{}

	buffers budget       // memory for messages that are being received
	loaded  atomic.Int64 // bytes of messages that are fully loaded into memory
	files   budget
}

// New returns a spool that may write up to limit bytes of temporary files in the file system of dir. It removes the
// files that a killed server left in dir. If that fails, New returns an error.
func New(dir string, limit int64) (*Spool, error) {
	if err := removeLeft(dir); err != nil {
		return nil, fmt.Errorf("cannot remove temporary files of incoming mail: %w", err)
	}
	return &Spool{
		dir: dir, free: diskFree, parses: make(chan struct{}, Parses),
		buffers: budget{limit: MemoryLimit - Parses*maxMessage}, files: budget{limit: limit},
	}, nil
}

// Usage is the number of bytes in use by a spool.
type Usage struct{ Memory, Files int64 }

// Usage returns the spool's current usage.
func (s *Spool) Usage() Usage {
	return Usage{s.buffers.used.Load() + s.loaded.Load(), s.files.used.Load()}
}

// budget counts the bytes in use, up to a limit.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take takes n bytes from the budget and returns true. If that would exceed the limit, it takes nothing and returns
// false.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) <= b.limit {
		return true
	}
	b.used.Add(-n)
	return false
}

// give returns n bytes to the budget.
func (b *budget) give(n int64) { b.used.Add(-n) }

// Incoming is a message that is being received. It is not safe for concurrent use.
type Incoming struct {
	spool *Spool
	head  []byte   // the first BufferBytes bytes of the message
	file  *os.File // the rest of the message; nil if the message fits in head
	size  int64    // size of the file
	taken int64    // bytes taken from the file budget

	buffered int64 // bytes taken from the buffer budget
}

// Receive starts receiving a message. The caller must close the message. If too many messages are being received,
// Receive returns ErrNoRoom.
func (s *Spool) Receive() (*Incoming, error) {
	if !s.buffers.take(BufferBytes) {
		return nil, ErrNoRoom
	}
	return &Incoming{spool: s, buffered: BufferBytes}, nil
}

// Write adds bytes to the message. If the file budget is exhausted or the disk is nearly full, it returns ErrNoRoom. It
// also returns any disk error.
func (m *Incoming) Write(p []byte) (int, error) {
	n := min(len(p), BufferBytes-len(m.head))
	m.head = append(m.head, p[:n]...)
	if n == len(p) {
		return n, nil
	}
	more, err := m.writeFile(p[n:])
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		err = ErrNoRoom
	case err != nil:
		err = fmt.Errorf("cannot store an incoming message: %w", err)
	}
	return n + more, err
}

// writeFile adds bytes to the file, creating it if necessary.
func (m *Incoming) writeFile(p []byte) (n int, err error) {
	if err = m.reserve(int64(len(p))); err != nil {
		return 0, err
	}
	if m.file == nil {
		if m.file, err = temporary(m.spool.dir); err != nil {
			return 0, err
		}
	}
	n, err = m.file.Write(p)
	m.size += int64(n)
	return n, err
}

// reserve takes enough bytes from the file budget for the file to grow by n bytes.
func (m *Incoming) reserve(n int64) error {
	for m.size+n > m.taken {
		if !m.spool.files.take(step) {
			return ErrNoRoom
		}
		m.taken += step
		if free, err := m.spool.free(m.spool.dir); err != nil {
			return err
		} else if free < minFree {
			return ErrNoRoom
		}
	}
	return nil
}

// Size returns the number of bytes written so far.
func (m *Incoming) Size() int64 { return int64(len(m.head)) + m.size }

// Reader returns a reader for the whole message from its beginning. While the reader is in use, the caller must not
// write to the message or close it.
func (m *Incoming) Reader() io.Reader {
	head := bytes.NewReader(m.head)
	if m.file == nil {
		return head
	}
	return io.MultiReader(head, io.NewSectionReader(m.file, 0, m.size))
}

// Head returns the beginning of the message. This is at least the message's header, or the first n bytes if the header
// is longer. Memory that Head allocates is charged to the buffer budget until Close, and the returned bytes are valid
// until then. Head returns ErrNoRoom if the buffer budget is exhausted. It also returns any disk error.
func (m *Incoming) Head(n int) ([]byte, error) {
	if m.file == nil || n <= len(m.head) || bytes.Contains(m.head, []byte("\r\n\r\n")) {
		return m.head, nil
	}
	if !m.spool.buffers.take(int64(n)) {
		return nil, ErrNoRoom
	}
	m.buffered += int64(n)
	head := make([]byte, min(int64(n), m.Size()))
	if _, err := io.ReadFull(m.Reader(), head); err != nil {
		return nil, fmt.Errorf("cannot read the header of an incoming message: %w", err)
	}
	return head, nil
}

// Close deletes the message and returns its bytes to the budgets. Calling Close again has no effect.
func (m *Incoming) Close() {
	if m.spool == nil {
		return
	}
	if m.file != nil {
		m.file.Close() // the file has no name, so closing it removes it
	}
	m.spool.files.give(m.taken)
	m.spool.buffers.give(m.buffered)
	*m = Incoming{}
}

// Load reads the message into memory, prepends the bytes of above, and passes the result to use. While Parses other
// messages are loaded, Load waits. The bytes are valid until use returns. If ctx is done while Load waits, Load returns
// ctx's cancellation cause. It also returns any disk error.
func (m *Incoming) Load(ctx context.Context, above []byte, use func(whole []byte)) error {
	s := m.spool
	select {
	case s.parses <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.parses }()
	size := int64(len(above)) + m.Size()
	s.loaded.Add(size)
	defer s.loaded.Add(-size)
	whole := make([]byte, size)
	copy(whole, above)
	if _, err := io.ReadFull(m.Reader(), whole[len(above):]); err != nil {
		return fmt.Errorf("cannot read an incoming message: %w", err)
	}
	use(whole)
	return nil
}
