package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"syscall"

	"mailtree/mcp/peeruid"
	"mailtree/mcp/socket"
)

// web is a server's TCP port, which serves MCP over HTTP and the page. A foreground server listens as soon as it
// starts. A background server listens once `mailtree open` asks for the page.
type web struct {
	cfg  *config
	log  *slog.Logger
	open string // a warning if every OS user on this machine may use the port; otherwise empty

	mu    sync.Mutex
	ln    net.Listener       // nil if the server is not listening
	serve func(net.Listener) // serves a listener in a goroutine; set by use
	users *socket.Listener   // counts the connections of a background server; set by use
}

// newWeb returns a web that is not listening yet. It returns an error if AUTH=user is set but this system cannot
// identify the OS user of a connection.
func newWeb(cfg *config, log *slog.Logger) (*web, error) {
	open, err := cfg.checkUsers()
	return &web{cfg: cfg, log: log, open: open}, err
}

// checkUsers turns AUTH=user off if this system cannot identify the OS user of a connection. If AUTH was explicitly set
// to user, checkUsers returns an error instead. open is a warning if every OS user on this machine may use the port,
// and otherwise empty.
func (c *config) checkUsers() (open string, err error) {
	if c.RequireToken {
		return "", nil
	}
	if !c.UserOnly {
		return "AUTH=open: every OS user on this machine can read and write all mail over HTTP", nil
	}
	why := peeruid.Check()
	if why == nil {
		return "", nil
	}
	if c.source("AUTH") != "default" {
		return "", fmt.Errorf("AUTH=user does not work here: %w. Set AUTH=token, or AUTH=open to allow every user on this machine", why)
	}
	c.UserOnly = false
	return fmt.Sprintf("every OS user on this machine can read and write all mail over HTTP, because %v; to require the "+
		"token, set AUTH=token",
		why), nil
}

// openPort opens the TCP port. Errors tell the user what to do, and wrap EADDRINUSE if another program uses the port.
func (w *web) openPort(ctx context.Context) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ln, err = listenAt(ctx, w.cfg, w.cfg.Port)
	return err
}

// listenAt listens on the given port at the address in HOST.
func listenAt(ctx context.Context, cfg *config, port int) (net.Listener, error) {
	addr := net.JoinHostPort(cfg.Host, strconv.Itoa(port))
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w. If another server is using it, choose another port with PORT or --port; "+
			"--port 0 picks a free one", addr, errors.Unwrap(err))
	}
	return ln, nil
}

// use sets the function that serves a listener, and serves the listener that is already open, if any. A background
// server counts its connections in users, and exits when no client is connected.
func (w *web) use(serve func(net.Listener), users *socket.Listener) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serve, w.users = serve, users
	if w.ln != nil {
		serve(w.ln)
	}
}

// url returns the server's URL over TCP. If the server is not listening yet, url makes the server listen. If another
// program is using PORT, the server listens on a free port instead.
func (w *web) url(ctx context.Context) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ln == nil {
		ctx = context.WithoutCancel(ctx) // the listener outlives the request
		ln, err := listenAt(ctx, w.cfg, w.cfg.Port)
		if errors.Is(err, syscall.EADDRINUSE) {
			ln, err = listenAt(ctx, w.cfg, 0)
		}
		if err != nil {
			return "", err
		}
		w.ln = ln
		w.serve(&countedListener{ln, w.users})
		w.log.Info("serving the web page", "url", w.at())
	}
	return w.at(), nil
}

// address returns the server's URL over TCP, or "" if the server is not listening.
func (w *web) address() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at()
}

// at is like address, but for a caller that holds mu.
func (w *web) at() string {
	if w.ln == nil {
		return ""
	}
	return serverURL(w.cfg, w.ln.Addr().(*net.TCPAddr).Port)
}

func (w *web) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ln != nil {
		w.ln.Close()
	}
}

// countedListener counts each of its connections as a client of the socket, so that a background server does not exit
// while a page is open.
type countedListener struct {
	net.Listener
	users *socket.Listener
}

// Accept returns the next connection. It closes connections that arrive after the server has decided to exit.
func (l *countedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if leave, ok := l.users.Enter(); ok {
			return &countedConn{Conn: c, leave: sync.OnceFunc(leave)}, nil
		}
		c.Close()
	}
}

type countedConn struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *countedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
