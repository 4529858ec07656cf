package tool

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"mailtree/maildir/refusal"
)

// Memory bounds the memory of a server's large answers. Calls reserve their part before they read
// what they answer, and wait for it in the order in which they came. Safe for concurrent use.
type Memory struct {
	size int64
	free *semaphore.Weighted
}

// NewMemory makes a Memory of so many bytes.
func NewMemory(bytes int64) *Memory {
	return &Memory{size: bytes, free: semaphore.NewWeighted(bytes)}
}

// patience is how long a call waits for memory: an answer takes well under a second, and many may
// be waiting before it.
const patience = 20 * time.Second

// errCrowded says that no memory became free in time.
var errCrowded error = &refusal.Own{Kind: refusal.ErrUnavailable,
	Text: "The server is busy (too many large answers at once): try again in a moment, or ask for less at once.",
}

// reserve waits for bytes. Errors: errCrowded, the cause of ctx's end.
func (m *Memory) reserve(ctx context.Context, bytes int64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errCrowded)
	defer cancel()
	if m.free.Acquire(ctx, bytes) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Hold is the part of a Memory that one request has, until its answer has been written or dropped.
// A nil Hold has no bound. Safe for concurrent use.
type Hold struct {
	memory *Memory

	mu    sync.Mutex
	bytes int64
	over  bool
}

// Hold begins a hold; its owner releases it.
func (m *Memory) Hold() *Hold { return &Hold{memory: m} }

// Reserve waits until the request has as many bytes, or all that there are. Errors: ErrUnavailable,
// the cause of ctx's end.
func (h *Hold) Reserve(ctx context.Context, bytes int64) error {
	if h == nil {
		return nil
	}
	if bytes = min(bytes, h.memory.size); !h.drop(bytes) {
		return nil
	}
	if err := h.memory.reserve(ctx, bytes); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over { // the request has been answered otherwise: this call is for nobody
		h.memory.free.Release(bytes)
		return context.Canceled
	}
	h.bytes += bytes
	return nil
}

// drop gives back what the hold has, where that is less than bytes, and reports whether it is less.
// A request that kept its part while it waits for more could wait for others that do the same.
func (h *Hold) drop(bytes int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bytes >= bytes {
		return false
	}
	h.memory.free.Release(h.bytes)
	h.bytes = 0
	return true
}

// Release gives everything back; the request may reserve again.
func (h *Hold) Release() {
	if h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.memory.free.Release(h.bytes)
		h.bytes = 0
	}
}

// End releases for good.
func (h *Hold) End() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.memory.free.Release(h.bytes)
	h.bytes, h.over = 0, true
}

type holdKey struct{}

// WithHold puts a request's hold into ctx.
func WithHold(ctx context.Context, h *Hold) context.Context {
	return context.WithValue(ctx, holdKey{}, h)
}

// HoldOf returns the hold of the request in which a call came; nil where there is none.
func HoldOf(ctx context.Context) *Hold {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	return h
}
