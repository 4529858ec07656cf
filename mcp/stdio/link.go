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
	"sync"
	"time"

	"mailtree/mcp/protocol"
	"mailtree/mcp/tool"
)

// link is a server, from the moment that it is found until it goes. While it lasts the server holds
// a request of the bridge (GET …/hold), so that one in the background stays, and each side notices
// the other's end.
type link struct {
	down    chan struct{} // closed when it has gone
	lost    time.Time     // when; to be read after down is closed
	end     context.CancelFunc
	streams sync.WaitGroup

	mu      sync.Mutex
	session string // the client's session there; "" none
	version string // revision of that session
	closed  bool   // nothing more runs on it
}

// handshake is what a client of the older era said, to be repeated to the next server.
type handshake struct {
	initialize  []byte
	initialized bool
	uris        map[string]bool // subscribed to
}

// connect returns the link, making a new one where there is none. Without start it starts no
// server; with it, it gives somebody else the time to start the next one first. Errors are for the
// client to read.
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

// open makes a link. Only a refusal of the server to this user or toolset is not tried again.
func (b *bridge) open(ctx context.Context, start bool) (*link, error) {
	for try := 0; ; try++ {
		if start {
			c, err := b.cfg.Dial(ctx, true)
			if err != nil {
				return nil, err
			}
			c.Close() // the transport makes its own
		}
		l, err := b.hold(ctx)
		if err == nil {
			err = b.enterLink(ctx, l)
			if errors.Is(err, errLate) {
				continue
			}
			return l, err
		}
		var no *refused
		if errors.As(err, &no) || !start || try >= 5 {
			return nil, err
		}
		if !pause(ctx) { // it has just ended
			return nil, ctx.Err()
		}
	}
}

// refused is the server's own sentence.
type refused struct{ text string }

func (r *refused) Error() string { return r.text }

// hold asks the server to stay.
func (b *bridge) hold(ctx context.Context) (*link, error) {
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	defer stop() // the link outlasts the call that it is made for
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
	l.streams.Go(func() {
		_, _ = io.Copy(io.Discard, res.Body) // until it goes, or cancel
		res.Body.Close()
		l.lost = time.Now()
		close(l.down)
	})
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

// errLate says that the client's handshake changed while it was repeated: what a server answers as
// it ends.
var errLate = errors.New("the handshake that was repeated is not the client's any more")

// enterLink makes l the link and repeats the client's handshake on it. Errors: errLate, or the
// server's refusal.
func (b *bridge) enterLink(ctx context.Context, l *link) error {
	b.mu.Lock()
	old, shake, said := b.link, b.shake, b.said
	uris := make([]string, 0, len(shake.uris))
	for u := range shake.uris {
		uris = append(uris, u)
	}
	b.mu.Unlock()
	if old != nil {
		old.close()
	}
	if shake.initialize != nil {
		if err := b.reshake(ctx, l, shake, uris); err != nil {
			l.close()
			return fmt.Errorf("the server that runs now does not take the handshake: %w", err)
		}
	}
	b.mu.Lock()
	late := b.said != said
	if !late {
		b.link = l
	}
	b.mu.Unlock()
	if late {
		l.close()
		return errLate
	}
	return nil
}

// changed notes that the handshake has changed by an answer that came over l; false where another
// link has taken its place, which is ended: it began without the change. b.mu is held.
func (b *bridge) changed(l *link) bool {
	b.said++
	if b.link != l {
		b.link.end()
		return false
	}
	return true
}

// reshake repeats the handshake and the subscriptions of a client to another server, and tells the
// client that what it watches may have changed.
func (b *bridge) reshake(ctx context.Context, l *link, shake handshake, uris []string) error {
	const id = `"mailtree-bridge"`
	var m map[string]json.RawMessage
	if err := json.Unmarshal(shake.initialize, &m); err != nil {
		return err
	}
	m["id"] = json.RawMessage(id)
	if err := b.own(ctx, l, tool.Encode(m)); err != nil {
		return err
	}
	if shake.initialized {
		if err := b.own(ctx, l, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
			return err
		}
	}
	b.stream(ctx, l)
	for _, u := range uris {
		p := string(tool.Encode(u))
		if err := b.own(ctx, l, []byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"resources/subscribe","params":{"uri":`+p+`}}`)); err != nil {
			return err
		}
		b.answer([]byte(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":` + p + `}}`))
	}
	return nil
}

// own posts a message of the bridge's own.
func (b *bridge) own(ctx context.Context, l *link, raw []byte) error {
	m, _, err := parse(raw)
	if err != nil {
		return err
	}
	res, err := b.post(ctx, l, m)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if m.method == "initialize" {
		return l.beginStream(res)
	}
	if res.StatusCode >= 300 {
		return errors.New("it answers " + res.Status)
	}
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// beginStream keeps the session that an answer to initialize begins. The body is read and put back.
func (l *link) beginStream(res *http.Response) error {
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	var answer struct {
		Result struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Result.Version == "" {
		return errors.New("it answers " + res.Status + " to initialize")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session, l.version = res.Header.Get(protocol.SessionHeader), answer.Result.Version
	return nil
}

// stream passes on what the server says in the session of its own accord, as long as the link
// lasts. It returns when the server has begun, or ctx has ended: what changes before that the
// client would not hear of.
func (b *bridge) stream(ctx context.Context, l *link) {
	if !l.inSession() {
		return
	}
	lasting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	begun := make(chan struct{})
	open := l.run(func() { <-l.down; cancel() }, func() {
		res, err := b.do(lasting, http.MethodGet, "mcp", nil, l.headers())
		close(begun)
		if err != nil {
			return
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			b.log.Warn("stdio: no stream of notifications", "status", res.Status)
			return
		}
		_ = events(res.Body, func(data []byte) bool { b.answer(data); return true })
		l.end() // with the stream the session has ended: begin anew
	})
	if !open {
		return
	}
	select {
	case <-begun:
	case <-ctx.Done():
	}
}

// run runs what close waits for; false when that has begun.
func (l *link) run(all ...func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range all {
		if !l.closed {
			l.streams.Go(f)
		}
	}
	return !l.closed
}

func (l *link) inSession() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session != ""
}

func (l *link) headers() http.Header {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := http.Header{}
	if l.session != "" {
		h.Set(protocol.SessionHeader, l.session)
		h.Set(protocol.VersionHeader, l.version)
	}
	return h
}

// close ends a link and waits for what runs on it.
func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.end()
	l.streams.Wait()
}

// keep looks for the next server when one has gone, without starting one: a client that only waits
// for notifications hears of changes again once somebody has. Whoever asks for something starts it.
func (b *bridge) keep(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.current().down:
		}
		b.log.Info("stdio: the server has gone; looking for the next one")
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

// leaveLink ends the session and the link.
func (b *bridge) leaveLink(ctx context.Context) {
	l := b.current()
	if l.inSession() && l.up() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.Patience)
		defer cancel()
		if res, err := b.do(ctx, http.MethodDelete, "mcp", nil, l.headers()); err == nil {
			res.Body.Close()
		}
	}
	l.close()
}

// do makes a request to the toolset.
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

// pause waits a moment; false when ctx ended.
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
