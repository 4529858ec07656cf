package socket

import (
	"context"
	"net"
	"os"
	"sync"
)

// Pipe is a listener that only this process connects to: a command that has the store for a moment
// calls its server as it calls any other.
type Pipe struct {
	conns chan net.Conn
	done  chan struct{}
	close sync.Once
}

// NewPipe makes one. The caller closes it.
func NewPipe() *Pipe { return &Pipe{conns: make(chan net.Conn), done: make(chan struct{})} }

// Dial connects to whoever accepts. Errors: ctx's; net.ErrClosed.
func (p *Pipe) Dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- &Conn{Conn: there, UID: os.Geteuid()}:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Accept waits for the next connection, a *Conn of this process's user.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close ends the listening; again it does nothing.
func (p *Pipe) Close() error {
	p.close.Do(func() { close(p.done) })
	return nil
}

// Addr is as of net.Listener.
func (p *Pipe) Addr() net.Addr { return &net.UnixAddr{Net: "unix", Name: "pipe"} }
