package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"mailtree/maildir"
)

// listen takes the TCP port. Errors say what to do.
func listen(ctx context.Context, cfg *config) (net.Listener, error) {
	addr := net.JoinHostPort(cfg.Host, strconv.Itoa(cfg.Port))
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil && errors.Is(err, syscall.EADDRINUSE) && maildir.Held(cfg.Store) {
		return nil, fmt.Errorf("the store %s is in use by process %s, which may be the server on %s: use that one, or stop "+
			"it", cfg.Store, maildir.LockHolder(cfg.Store), addr)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w. Is another server there? Choose another with PORT or --port, or "+
			"--port 0 for any free one", addr, errors.Unwrap(err))
	}
	return ln, nil
}

// keptListener is a TCP listener that stays open when an HTTP server closes it, until its context
// ends.
type keptListener struct {
	*net.TCPListener
	until  context.Context
	closed atomic.Bool
}

// reopen makes Accept work again, for the next server.
func (l *keptListener) reopen() error {
	l.closed.Store(false)
	return l.SetDeadline(time.Time{})
}

// Accept implements net.Listener. After Close it fails until reopen.
func (l *keptListener) Accept() (net.Conn, error) {
	c, err := l.TCPListener.Accept()
	if err != nil && l.closed.Load() {
		err = net.ErrClosed
	}
	return c, err
}

// refuse answers every request with an error for that long, while no server can. With a nil
// listener it only waits.
func (l *keptListener) refuse(ctx context.Context, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if l == nil || l.reopen() != nil {
		<-ctx.Done()
		return
	}
	srv := &http.Server{ReadHeaderTimeout: grace, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "2")
		http.Error(w, "503: the server cannot start anew, and tries again; its log says why", http.StatusServiceUnavailable)
	})}
	defer srv.Close()
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	_ = srv.Serve(l)
	<-ctx.Done()
}

// Close ends Accept. Connections that come meanwhile wait for the next server.
func (l *keptListener) Close() error {
	l.closed.Store(true)
	if l.until.Err() != nil {
		return l.TCPListener.Close()
	}
	return l.SetDeadline(time.Now())
}
