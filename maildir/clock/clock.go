// Package clock gives messages their ids and times, in an order that survives a clock that stands
// still or is set back. See docs/settings.md, "The clock".
package clock

import (
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"
)

// setBack is how far the machine's clock may be set back without ids and times following it: time
// servers correct a clock by seconds.
const setBack = time.Minute

// Clock makes ids and creation times. Within a process both increase strictly while the machine's
// clock goes on, stands still or is set back by at most setBack. When that is set back by more,
// which is what happens after it jumped forward, both follow it and increase from there: mail has
// the date that the clock shows, and stands in every list where that date belongs, below what was
// sent under the wrong clock. An id does not come again even then: nine of its digits are random,
// and a message file is created only where there is none. Safe for concurrent use.
type Clock struct {
	now  func() time.Time
	rand io.Reader

	mu   sync.Mutex
	last time.Time // newest creation time, microseconds
	day  string
	id   uint64 // newest 16 hex digits of that day
}

// New makes a clock of the machine's clock and of random bytes.
func New(now func() time.Time, rand io.Reader) *Clock { return &Clock{now: now, rand: rand} }

// Stamp returns the id and creation time of a new message. The id is msg_, the UTC date, _ and 16
// hex digits: seven of the milliseconds in the day and nine random. Errors: those of the random
// bytes.
func (c *Clock) Stamp() (id string, created time.Time, err error) {
	var r [8]byte
	if _, err := io.ReadFull(c.rand, r[:]); err != nil {
		return "", time.Time{}, err
	}
	random := binary.BigEndian.Uint64(r[:])
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.reading()
	if t.Equal(c.last) {
		t = t.Add(time.Microsecond)
	}
	c.last = t
	midnight := t.Truncate(24 * time.Hour)
	n := uint64(t.Sub(midnight).Milliseconds())<<36 | random>>28
	d := t.Format("20060102")
	if d == c.day && n <= c.id {
		n = c.id + 1 + random&0xffff
	}
	c.day, c.id = d, n
	return fmt.Sprintf("msg_%s_%016x", d, n), t, nil
}

// idForm is the form of the ids that Stamp makes.
var idForm = regexp.MustCompile(`msg_[0-9]{8}_[0-9a-f]{16}`)

// FindID returns the id in a text that names a message in another way: a link, a path, "#ID", upper
// case. "" where there is none.
func FindID(text string) string { return idForm.FindString(strings.ToLower(text)) }

// Time returns the time in the order of creation times: before all that are yet to be made, and not
// before any that was made, unless the machine's clock is set back.
func (c *Clock) Time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = c.reading()
	return c.last
}

// reading is what the clock says, but nothing before the newest creation time unless the clock was
// set back by more than setBack.
func (c *Clock) reading() time.Time {
	t := c.now().UTC().Truncate(time.Microsecond)
	switch back := c.last.Sub(t); {
	case back < 0:
		return t
	case back > setBack:
		c.day, c.id = "", 0
		return t
	}
	return c.last
}
