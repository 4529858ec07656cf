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

// link is a connection to a server, from the time when the server is found until it ends. Meanwhile the server keeps a
// request from the bridge open (GET …/hold), so that a background server keeps running, and each side notices when the
// other one ends.
type link struct {
	down chan struct{} // closed when the server has ended
	lost time.Time     // time when the server ended; read it only after down is closed
	end  context.CancelFunc
}

// connect returns the link, and creates a new one if there is none. If start is false, it starts no server. If
// start is true, it first gives another process time to start the next server. Its errors are written for the
// client.
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

// open creates a link. It tries again unless the server refuses this user or toolset.
func (b *bridge) open(ctx context.Context, start bool) (*link, error) {
	for try := 0; ; try++ {
		if start {
			c, err := b.cfg.Dial(ctx, true)
			if err != nil {
				return nil, err
			}
			c.Close() // this was only a test, because the transport creates its own connections
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
		if !pause(ctx) { // the server has just ended
			return nil, ctx.Err()
		}
	}
}

// refused is a refusal in the server's own words.
type refused struct{ text string }

func (r *refused) Error() string { return r.text }

// hold asks the server to keep running.
func (b *bridge) hold(ctx context.Context) (*link, error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	defer stop() // the link outlasts the call that creates it
	res, err := b.do(lasting, http.MethodGet, "hold", nil, nil)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("the server does not answer: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		defer cancel()
		defer res.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
		var e struct{ Error struct{ Message string } }
		if json.Unmarshal(body, &e) != nil || e.Error.Message == "" {
			e.Error.Message = "the server answers " + res.Status
		}
		return nil, &refused{e.Error.Message}
	}
	l := &link{down: make(chan struct{}), end: cancel}
	go func() {
		_, _ = io.Copy(io.Discard, res.Body) // until the server ends, or cancel
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

// keep looks for the next server when one has ended, without starting one. Therefore a client that only waits for
// notifications gets them again once a server has been started. A request starts a server.
func (b *bridge) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.current().down:
		}
		b.log.Info("stdio: the server is gone; looking for a new one")
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

// pause waits a moment. It reports false if ctx has ended.
func pause(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(lookAgain):
		return true
	}
}

// unsent reports whether a request that failed never reached the server.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
