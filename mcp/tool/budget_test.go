package tool

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"mailtree/maildir/refusal"
)

// TestFit checks that the computed size of a text equals the size of its JSON, in every encoding. The prefix that fits
// must end between two characters, and leave less than a tenth of the space unused. TestSizes in package mcp checks the
// sizes on the wire.
func TestFit(t *testing.T) {
	for _, form := range []Encoding{InTool, InText, InResource} {
		around := form.Size("")
		for _, piece := range []string{"a", "\"", "\\", "\n", "\r", "\t", "\b", "\f", "\x01", "\x7f", "<", ">", "&", "ä", "€", "😀", "\u2028",
			"\ufffd", "\xff", "\x80", "aä\n€<😀"} {
			text := strings.Repeat(piece, 10_000)
			n, size := form.fit(text, math.MaxInt32)
			if want := form.Size(text) - around; n != len(text) || size != want {
				t.Errorf("form %d: %q: %d bytes take %d, want %d", form, piece, n, size, want)
			}
			for _, most := range []int{0, 10, 1000, 10_000} {
				n, size := form.fit(text, most)
				if got := form.Size(text[:n]) - around; got != size || size > most || size < most*9/10-100 || utf8.ValidString(text) && !utf8.ValidString(text[:n]) {
					t.Errorf("form %d: %q in %d bytes: %d bytes take %d, reported %d", form, piece, most, n, got, size)
				}
			}
		}
	}
}

// free returns the number of bytes that are not reserved. No caller may be waiting.
func free(m *Memory) int64 {
	for n := m.size; ; n-- {
		if m.free.TryAcquire(n) {
			m.free.Release(n)
			return n
		}
	}
}

// TestMemory checks that callers never get more memory than is available, and that they are served in order. If a
// waiting caller gives up, the next caller must be served. Bytes that are reserved again must not be counted twice, and
// reserved bytes must be released only once.
func TestMemory(t *testing.T) {
	t.Parallel()
	m := NewMemory(100)
	first, second := m.Hold(), m.Hold()
	for _, n := range []int64{60, 40, 60} {
		if err := first.Reserve(t.Context(), n); err != nil || free(m) != 40 {
			t.Fatalf("%d: %v, %d free", n, err, free(m))
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if err := second.Reserve(ctx, 50); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that leaves: %v", err)
		}
	})
	for m.free.TryAcquire(1) { // wait until a caller is waiting for memory
		m.free.Release(1)
		runtime.Gosched()
	}
	small := m.Hold()
	waiting.Go(func() {
		if err := small.Reserve(t.Context(), 10); err != nil {
			t.Error(err)
		}
	})
	leave()
	waiting.Wait()
	if free(m) != 30 {
		t.Errorf("%d free, want 30", free(m))
	}
	for _, h := range []*Hold{first, first, small} {
		h.End()
	}
	if err := second.Reserve(t.Context(), 1000); err != nil || free(m) != 0 {
		t.Errorf("more than there is: %v, %d free", err, free(m))
	}
	second.Release()
	if err := first.Reserve(t.Context(), 10); !errors.Is(err, context.Canceled) || free(m) != 100 {
		t.Errorf("after its end: %v, %d free", err, free(m))
	}
	if err := (*Hold)(nil).Reserve(t.Context(), 1); err != nil || refusal.Code(errCrowded) != "unavailable" {
		t.Error(err)
	}
}
