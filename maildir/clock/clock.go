// Package clock assigns ids and times to messages. Ids and times stay in order even if the machine's clock stops or is
// set back. See docs/reference/settings.md, "The clock".
package clock

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"mailtree/maildir/lazy"
)

// setBack is how far the machine's clock may be set back before ids and times follow it. Time servers correct a clock
// by only a few seconds.
const setBack = time.Minute

// Clock creates ids and creation times. Within a process, both strictly increase while the machine's clock runs, stops,
// or is set back by at most setBack.
//
// If the clock is set back further, for example after a jump forward, both follow the clock and increase from there.
// New mail then carries the clock's date, so lists sort it below mail that was sent while the clock was wrong. Even
// then, ids do not repeat: nine of their digits are random, and a message file is created only if no such file exists.
//
// A Clock is safe for concurrent use.
type Clock struct {
	now  func() time.Time
	rand io.Reader

	mu   sync.Mutex
	last time.Time // newest creation time, truncated to microseconds
	day  string
	id   uint64 // the 16 hex digits of the newest id
}

// New returns a clock that reads the machine's clock from now and random bytes from rand.
func New(now func() time.Time, rand io.Reader) *Clock { return &Clock{now: now, rand: rand} }

// Stamp returns the id and creation time of a new message. The id consists of msg_, the UTC date, _ and 16 hex digits:
// seven for the milliseconds of the day and nine random ones. It returns any error from reading random bytes.
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

// idForm matches the ids that Stamp creates.
var idForm = lazy.Regexp(`msg_[0-9]{8}_[0-9a-f]{16}`)

// FindID finds the id in text, which may be a link, a path, "#ID" or an id in upper case. It returns "" if text
// contains no id.
func FindID(text string) string { return idForm().FindString(strings.ToLower(text)) }

// Time returns the current time for comparisons with creation times. The result is earlier than every later creation
// time and not earlier than any previous one, unless the machine's clock is set back by more than setBack.
func (c *Clock) Time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = c.reading()
	return c.last
}

// reading returns the clock's time, or the newest creation time if that is later. However, if the clock was set back by
// more than setBack, reading returns the clock's time.
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

// Sleep waits for d. If ctx is done first, Sleep returns ctx's cause.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
