package index

import (
	"context"
	"unicode/utf8"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// Room is the space for messages in a response of limited size. A toolset creates a Room for each call. A read adds
// messages to the Room until it is full, and does not read bodies that would not fit. The first message is always
// included, with as much of its body as fits. The read ends before the first later message that does not fit
// completely. A nil Room has no limit. A Room is not safe for concurrent use.
type Room struct {
	// Small and Large are response sizes in bytes. A read first uses Small, which needs no reservation. If Small is not
	// enough, the read is repeated with Large, after Reserve.
	Small, Large int
	// Row returns how many bytes a message takes up in the response, not counting the message's body.
	Row func(m *MessageRow) int
	// Fit finds the longest prefix of text that fits into the space left in the response and does not end inside a
	// character. The argument most is the number of bytes left. The prefix is n bytes long and takes up size bytes in
	// the response.
	Fit func(text string, most int) (n, size int)
	// Reserve waits until the server has memory for a response of Large bytes. beside is the number of bytes to reserve
	// in addition. If Reserve fails, the tool call returns the error. Release frees that memory. A call that waits for
	// mail may free the memory first.
	Reserve func(ctx context.Context, beside int64) error
	Release func()
	// Offset is the byte offset in the first message's body at which the response begins. It must be at the start of a
	// character.
	Offset int64

	left int  // number of free bytes
	held int  // number of messages added
	last bool // no larger size is left to try
	full bool // a message was omitted or truncated
}

// Attempt calls read, which adds messages to the room. The room's size is Small for the first call. If that is too
// small, Attempt calls read again with Large. It returns any error from read or Reserve.
func (r *Room) Attempt(ctx context.Context, read func() error) error {
	if r == nil {
		return read()
	}
	r.last = false
	r.Empty()
	if err := read(); err != nil || !r.full {
		return err
	}
	if err := r.Reserve(ctx, 0); err != nil {
		return err
	}
	r.last = true
	r.Empty()
	return read()
}

// Empty removes all messages from the room before a new read.
func (r *Room) Empty() {
	if r == nil {
		return
	}
	r.left, r.held, r.full = r.Small, 0, false
	if r.last {
		r.left = r.Large
	}
}

// More reports whether the last read omitted something because the room was full.
func (r *Room) More() bool { return r != nil && r.full }

// MayGrow reports whether the last read omitted something and a larger size can still be tried.
func (r *Room) MayGrow() bool { return r.More() && !r.last }

// GiveBack frees the memory that Attempt reserved.
func (r *Room) GiveBack() {
	if r != nil {
		r.Release()
	}
}

// Take adds one more message to the room. body reads n bytes of the message's body, starting at an offset. If body is
// not nil, Take sets Body, BodyFrom and BodyNext. If ok is false, the message was not added, and the caller must omit
// all later messages too. Take returns any error from body. It returns ErrInvalid for an Offset that is beyond the
// body's end or inside a character.
func (r *Room) Take(m *MessageRow, body func(offset, n int64) (string, error)) (ok bool, err error) {
	if r == nil {
		if body != nil {
			m.Body, err = body(0, m.BodyBytes)
		}
		return err == nil, err
	}
	must := r.held == 0 && r.last // the message must be included, with at least part of its body
	left := r.left - r.Row(m)
	if left < 0 && !must {
		r.full = true
		return false, nil
	}
	if body != nil {
		var from int64
		if r.held == 0 {
			from = r.Offset
		}
		size, err := r.takeBody(m, from, max(left, 0), must, body)
		if err != nil || size < 0 {
			return false, err
		}
		left -= size
	}
	r.left = left
	r.held++
	return true, nil
}

// takeBody reads the body from offset from, if it fits into left bytes of the response. If must is set and the body
// does not fit, takeBody reads as much as fits. size is the number of bytes that the text takes up in the response. If
// the body does not fit, takeBody marks the room as full and, unless must is set, returns a negative size.
func (r *Room) takeBody(m *MessageRow, from int64, left int, must bool, body func(offset, n int64) (string, error)) (size int, err error) {
	rest := m.BodyBytes - from
	switch {
	case rest < 0:
		return 0, &refusal.Error{
			What:   refusal.OffsetBeyond,
			Field:  refusal.Offset,
			Counts: []int{int(from)},
			Limit:  int(m.BodyBytes),
		}
	case rest > int64(left) && !must: // each byte takes up at least one byte in the response
		r.full = true
		return -1, nil
	}
	text, err := readFrom(from, min(rest, int64(left)), body)
	if err != nil {
		return 0, err
	}
	if int64(len(text)) < rest {
		text = text[:len(text)-format.HalfCharacter(text)]
	}
	n, size := r.Fit(text, left)
	if int64(n) < rest {
		if r.full = true; !must {
			return -1, nil
		}
		m.BodyNext = from + int64(n)
	}
	m.Body, m.BodyFrom = text[:n], from
	return size, nil
}

// readFrom reads n bytes of a body, starting at an offset that must not be inside a character.
func readFrom(from, n int64, body func(offset, n int64) (string, error)) (string, error) {
	before := min(from, utf8.UTFMax-1)
	text, err := body(from-before, before+n)
	if err != nil {
		return "", err
	}
	if format.StartsWithin(text, int(before)) {
		return "", &refusal.Error{What: refusal.OffsetInCharacter, Field: refusal.Offset, Counts: []int{int(from)}}
	}
	return text[min(before, int64(len(text))):], nil
}
