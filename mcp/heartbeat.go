package mcp

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// heartbeat is the ResponseWriter of a stream that may have no events for hours. Proxies and clients close a connection
// that is silent for a minute, so run writes a comment at regular intervals. The HTML standard recommends a comment
// "every 15 seconds or so", but longer intervals work too. A heartbeat is safe for concurrent use.
type heartbeat struct {
	http.ResponseWriter
	mu    sync.Mutex
	begun bool // something has been written or flushed, so the headers have been sent
}

// beat is a comment in an event stream.
const beat = ": \n\n"

// Unwrap returns the wrapped ResponseWriter to http.ResponseController.
func (h *heartbeat) Unwrap() http.ResponseWriter { return h.ResponseWriter }

func (h *heartbeat) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = true
	return h.ResponseWriter.Write(p)
}

// FlushError flushes the response. It is called by http.ResponseController.
func (h *heartbeat) FlushError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.begun = true
	return http.NewResponseController(h.ResponseWriter).Flush()
}

// run writes a comment every interval until ctx is done. It calls gone if it can no longer write to the client.
func (h *heartbeat) run(ctx context.Context, every time.Duration, gone func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if h.comment() != nil {
			gone()
			return
		}
	}
}

// comment writes a comment if the stream has begun.
func (h *heartbeat) comment() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.begun {
		return nil
	}
	return writeBeat(h.ResponseWriter)
}

// writeBeat writes a comment and flushes it.
func writeBeat(w http.ResponseWriter) error {
	extendDeadline(w, len(beat))
	if _, err := io.WriteString(w, beat); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}

// beating writes comments to a stream until stop is called.
func (a *answer) beating(every time.Duration) (stop func()) {
	h := &heartbeat{ResponseWriter: a.ResponseWriter}
	a.ResponseWriter = h
	ctx, cancel := context.WithCancel(a.request.Context())
	var wg sync.WaitGroup
	wg.Go(func() { h.run(ctx, every, a.cancel) })
	return func() {
		cancel()
		wg.Wait()
	}
}
