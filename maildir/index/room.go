package index

import (
	"context"
	"unicode/utf8"

	"mailtree/maildir/format"
	"mailtree/maildir/refusal"
)

// Room is the room that an answer of limited size has for messages. A toolset makes one for each
// call. A read fills it message by message and reads no body that would not fit: the first message
// always comes, with as much of its body as there is room for; the read ends before the first other
// one that does not fit whole. A nil Room bounds nothing. Not safe for concurrent use.
type Room struct {
	// Small and Large are bytes of the answer. A read is tried within Small, which costs no
	// reservation; where that does not hold everything, it is done again within Large, after
	// Reserve.
	Small, Large int
	// Row is how many bytes a message takes in the answer without its body.
	Row func(m *MessageRow) int
	// Fit measures the longest beginning of text that takes at most most bytes in the answer and
	// ends between two characters: n bytes of text take size bytes.
	Fit func(text string, most int) (n, size int)
	// Reserve waits until the server has the memory for an answer of Large, and for that many bytes
	// beside it. Its error is the call's. Release gives the memory back, while the call waits for
	// mail.
	Reserve func(ctx context.Context, beside int64) error
	Release func()
	// Offset is where in the body of the first message to begin, in bytes, at the start of a
	// character.
	Offset int64

	left int  // bytes
	held int  // messages
	last bool // there is no larger room to try
	full bool // a message was left out, or cut
}

// Attempt calls read, which takes room for messages: within Small, then, where that was too little,
// within Large. Errors: those of read and Reserve.
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

// Empty begins a read anew.
func (r *Room) Empty() {
	if r == nil {
		return
	}
	r.left, r.held, r.full = r.Small, 0, false
	if r.last {
		r.left = r.Large
	}
}

// More reports whether the last read left something out because there was no room.
func (r *Room) More() bool { return r != nil && r.full }

// MayGrow reports whether the last read left something out for which a larger room is still to be tried.
func (r *Room) MayGrow() bool { return r.More() && !r.last }

// GiveBack gives back what Attempt reserved.
func (r *Room) GiveBack() {
	if r != nil {
		r.Release()
	}
}

// Take puts one more message into the room. With body, which reads n bytes of the message's body
// from an offset on, the message gets its body: Body, BodyFrom and BodyNext are set. It reports
// whether the message is in; what comes behind one that is not must be left out too. Errors: those
// of body; ErrInvalid for an Offset that is beyond the body's end, or within a character.
func (r *Room) Take(m *MessageRow, body func(offset, n int64) (string, error)) (ok bool, err error) {
	if r == nil {
		if body != nil {
			m.Body, err = body(0, m.BodyBytes)
		}
		return err == nil, err
	}
	must := r.held == 0 && r.last // come, if only with a part of its body
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

// takeBody reads what fits of a body: all of it or, where it must, its beginning. size is what that
// takes in the answer; below zero, and the room is full, where it does not fit.
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
	case rest > int64(left) && !must: // every byte takes one or more
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

// readFrom reads n bytes of a body from an offset on, which must not be inside a character.
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
