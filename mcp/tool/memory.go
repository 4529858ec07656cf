package tool

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"mailtree/maildir/refusal"
)

// Memory limits how much memory all large responses of a server use together. Before a call reads the mail for its
// response, it reserves a share of the Memory. Calls are served in the order in which they request memory. A Memory is
// safe for concurrent use.
type Memory struct {
	size int64
	free *semaphore.Weighted
}

// NewMemory returns a Memory of the given number of bytes.
func NewMemory(bytes int64) *Memory {
	return &Memory{size: bytes, free: semaphore.NewWeighted(bytes)}
}

// patience is how long a call waits for memory. Creating one response takes well under a second, but many other calls
// may be waiting too.
const patience = 20 * time.Second

// errCrowded means that no memory became free in time.
var errCrowded error = &refusal.Own{Kind: refusal.ErrUnavailable,
	Text: "The server is busy (too many large responses at once): try again in a moment, or ask for less at once.",
}

// reserve waits until it has reserved the given number of bytes. It returns errCrowded, or ctx's cancellation cause.
func (m *Memory) reserve(ctx context.Context, bytes int64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errCrowded)
	defer cancel()
	if m.free.Acquire(ctx, bytes) != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Hold is the part of a Memory that belongs to one request until the request's response has been written or dropped. A
// nil Hold is unlimited. A Hold is safe for concurrent use.
type Hold struct {
	memory *Memory

	mu    sync.Mutex
	bytes int64
	over  bool
}

// Hold returns a new, empty hold. The caller must call End on it.
func (m *Memory) Hold() *Hold { return &Hold{memory: m} }

// Reserve waits until the request holds at least the given number of bytes. If the Memory is smaller than that, the
// request gets all of it. Reserve returns ErrUnavailable or ctx's cancellation cause.
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
	if h.over { // the request has been answered, so no client is waiting for this call's result
		h.memory.free.Release(bytes)
		return context.Canceled
	}
	h.bytes += bytes
	return nil
}

// drop releases all of h's memory if h holds less than the given number of bytes, and reports whether it did so. If
// requests kept memory while they waited for more, they could block one another.
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

// Release releases all bytes. The request may reserve memory again later.
func (h *Hold) Release() {
	if h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.memory.free.Release(h.bytes)
		h.bytes = 0
	}
}

// End releases all bytes. Later calls of Reserve fail.
func (h *Hold) End() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.memory.free.Release(h.bytes)
	h.bytes, h.over = 0, true
}

type holdKey struct{}

// WithHold returns a context that contains a request's hold.
func WithHold(ctx context.Context, h *Hold) context.Context {
	return context.WithValue(ctx, holdKey{}, h)
}

// HoldOf returns the request's hold from ctx, or nil if there is none.
func HoldOf(ctx context.Context) *Hold {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	return h
}
