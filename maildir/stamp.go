package maildir

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"
)

// setBack is how far the clock may be set back without the stamp following it: time servers correct
// a clock by seconds.
const setBack = time.Minute

// stamp makes ids and creation times. Within a process both increase strictly while the clock goes
// on, stands still or is set back by at most setBack. When it is set back by more, which is what
// happens after it jumped forward, both follow it and increase from there: mail has the date that
// the clock shows, and stands in every list where that date belongs, below what was sent under the
// wrong clock. An id does not come again even then: nine of its digits are random, and a message
// file is created only where there is none.
// See docs/settings.md, "The clock".
type stamp struct {
	now  func() time.Time
	rand io.Reader

	mu   sync.Mutex
	last time.Time // newest creation time, microseconds
	day  string
	id   uint64 // newest 16 hex digits of that day
}

// next returns an id and a creation time: msg_ + UTC date + _ + 16 hex digits, seven of the milliseconds in the
// day and nine random.
func (s *stamp) next() (id string, created time.Time, err error) {
	var r [8]byte
	if _, err := io.ReadFull(s.rand, r[:]); err != nil {
		return "", time.Time{}, err
	}
	random := binary.BigEndian.Uint64(r[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.reading()
	if t.Equal(s.last) {
		t = t.Add(time.Microsecond)
	}
	s.last = t
	midnight := t.Truncate(24 * time.Hour)
	n := uint64(t.Sub(midnight).Milliseconds())<<36 | random>>28
	d := t.Format("20060102")
	if d == s.day && n <= s.id {
		n = s.id + 1 + random&0xffff
	}
	s.day, s.id = d, n
	return fmt.Sprintf("msg_%s_%016x", d, n), t, nil
}

// time returns the time in the order of creation times: before all that are yet to be made, after
// none that was; but for a clock that is set back.
func (s *stamp) time() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = s.reading()
	return s.last
}

// reading is what the clock says, but nothing before the newest creation time unless the clock was
// set back by more than setBack.
func (s *stamp) reading() time.Time {
	t := s.now().UTC().Truncate(time.Microsecond)
	switch back := s.last.Sub(t); {
	case back < 0:
		return t
	case back > setBack:
		s.day, s.id = "", 0
		return t
	}
	return s.last
}
