package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"mailtree/mcp/protocol"
)

// link is a connection to a server. It lasts from when the bridge finds the server until the server exits. During this
// time, the server keeps a request from the bridge open (GET …/hold). This request keeps a background server running,
// and lets each side notice when the other one exits.
type link struct {
	down chan struct{} // closed when the server has exited
	lost time.Time     // when the server exited; may be read only after down is closed
	end  context.CancelFunc
}

// connect returns the current link, or creates one if there is none. If start is true and no server is running, connect
// starts a server, but first gives other processes time to start one. If start is false, connect does not start a
// server. The errors are worded for the client.
func (b *bridge) connect(ctx context.Context, start bool) (*link, error) {
	b.linking.Lock()
	defer b.linking.Unlock()
	l := b.current()
	if l != nil && l.up() {
		return l, nil
	}
	if start && l != nil {
		for time.Since(l.lost) < b.cfg.Patience {
			if l, err := b.open(ctx, false); err == nil {
				return l, nil
			}
			if !pause(ctx) {
				return nil, ctx.Err()
			}
		}
	}
	return b.open(ctx, start)
}

func (b *bridge) current() *link {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.link
}

// open creates a link. If start is true, open retries several times, but not if the server refuses this user or
// toolset.
func (b *bridge) open(ctx context.Context, start bool) (*link, error) {
	for try := 0; ; try++ {
		if start {
			c, err := b.cfg.Dial(ctx, true)
			if err != nil {
				return nil, err
			}
			c.Close() // only a check; the transport opens its own connections
		}
		l, err := b.hold(ctx)
		if err == nil {
			b.mu.Lock()
			b.link = l
			b.mu.Unlock()
			return l, nil
		}
		var no *refused
		if errors.As(err, &no) || !start || try >= 5 {
			return nil, err
		}
		if !pause(ctx) { // the server has just exited
			return nil, ctx.Err()
		}
	}
}

// refused is the server's refusal, with the text that the server sent.
type refused struct{ text string }

func (r *refused) Error() string { return r.text }

// hold opens the request that keeps the server running, and returns the link.
func (b *bridge) hold(ctx context.Context) (*link, error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	defer stop() // the link outlasts the call that created it
	res, err := b.do(lasting, http.MethodGet, "hold", nil, nil)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("the server is not responding: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		defer cancel()
		defer res.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
		var e struct{ Error struct{ Message string } }
		if json.Unmarshal(body, &e) != nil || e.Error.Message == "" {
			e.Error.Message = "the server returned " + res.Status
		}
		return nil, &refused{e.Error.Message}
	}
	l := &link{down: make(chan struct{}), end: cancel}
	go func() {
		_, _ = io.Copy(io.Discard, res.Body) // until the server exits or cancel is called
		res.Body.Close()
		l.lost = time.Now()
		close(l.down)
	}()
	return l, nil
}

func (l *link) up() bool {
	select {
	case <-l.down:
		return false
	default:
		return true
	}
}

// keep looks for a new server after a server has exited, but does not start one. A client that only waits for
// notifications therefore gets them again once another process has started a server. Only requests start a server.
func (b *bridge) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.current().down:
		}
		b.log.Info("stdio: the server has exited; looking for a new one")
		for again := false; !again; {
			if !pause(ctx) {
				return
			}
			_, err := b.connect(ctx, false)
			again = err == nil
		}
		b.log.Info("stdio: connected again")
	}
}

// do sends a request to the toolset.
func (b *bridge) do(ctx context.Context, method, what string, body []byte, h http.Header) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, "http://mailtree/toolset/"+b.cfg.Toolset+"/"+what, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for k, v := range h {
		r.Header[k] = v
	}
	r.Header.Set(protocol.HelloHeader, b.hello)
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	return b.client.Do(r)
}

// pause waits for a short time. It returns false if ctx is done.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(lookAgain):
		return true
	}
}

// unsent reports whether a failed request never reached the server.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
