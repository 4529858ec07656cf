// Package socket implements the Unix socket of a store. It listens on the socket, connects to it, and identifies the OS
// user behind each connection.
//
// Listen replaces a stale socket that a killed server has left behind. It never replaces the socket of a live server,
// because a listening server holds a lock. For server.sock, this is the store's lock. For a socket outside the store,
// it is the file <path>.lock next to the socket. If a listener's socket has been removed, Renew recreates it.
//
// A path in a socket address can be about a hundred bytes long. On Linux, longer paths work too: the package replaces
// the path of the folder with a file descriptor. On other systems, Listen returns an error that says what to do. See
// docs/reference/clients.md, "The socket, and other users".
package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// MaxGuestConns is the maximum number of open connections per user, except for the server's own user and root. The
// listener closes further connections immediately.
const MaxGuestConns = 64

// Config specifies where to listen and who may connect.
type Config struct {
	Path string
	Open bool         // whether other users may connect; if so, the mode is 0666 instead of 0600, and the lock file is next to the socket
	Busy func() bool  // reports whether AwaitIdle must wait for other work; nil means never
	Log  *slog.Logger // if nil, log lines are discarded
}

// Listener accepts connections and identifies the OS user of each one. It is safe for concurrent use.
type Listener struct {
	cfg  Config
	self int
	lock *os.File // lock file; nil unless Config.Open

	place  sync.Mutex // held while the socket is created or removed
	ln     net.Listener
	id     fs.FileInfo // identifies ln's socket file
	closed bool

	mu    sync.Mutex
	conns map[int]int // number of open connections, by uid
	open  int
	since time.Time // when the last connection ended or AwaitIdle began, whichever was later
	shut  bool      // AwaitIdle has returned nil
}

// Conn is a connection, together with the OS user that the kernel reports for its other end.
type Conn struct {
	net.Conn
	UID  int
	gone sync.Once
	from *Listener
}

// Listen creates the socket. If the path is in the store, the caller must hold the store's lock. The caller must close
// the listener, which removes the socket. Listen returns an error if another server is listening at the path, if a file
// other than a socket is there, or if the path is too long for this system. The error says what to do.
func Listen(ctx context.Context, cfg Config) (*Listener, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	l := &Listener{cfg: cfg, self: os.Geteuid(), conns: map[int]int{}}
	if cfg.Open {
		if err := l.own(); err != nil {
			return nil, err
		}
	}
	if err := l.listen(ctx); err != nil {
		l.unlock()
		return nil, err
	}
	return l, nil
}

// own acquires the lock of a socket outside the store. The lock is needed because the servers of two stores may use
// the same path.
func (l *Listener) own() error {
	f, err := os.OpenFile(l.cfg.Path+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("cannot create the socket %s: %w. Set SOCKET to a path in a writable folder", l.cfg.Path, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("cannot check whether another server is listening on the socket %s: %w", l.cfg.Path, err)
		}
		return fmt.Errorf("another server is listening on the socket %s: set SOCKET to another path", l.cfg.Path)
	}
	l.lock = f
	return nil
}

func (l *Listener) unlock() {
	if l.lock != nil {
		l.lock.Close()
	}
}

func (l *Listener) listen(ctx context.Context) error {
	if err := clear(ctx, l.cfg.Path); err != nil {
		return err
	}
	short, done, err := shorten(l.cfg.Path)
	if err != nil {
		return err
	}
	defer done()
	ln, err := (&net.ListenConfig{}).Listen(ctx, "unix", short)
	if err != nil {
		return fmt.Errorf("cannot create the socket %s: %w. If the file system is full, free some space. If it does "+
			"not support sockets, choose a path on another file system", l.cfg.Path, plain(err))
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // ln knows only the shortened path; withdraw removes the socket
	mode := fs.FileMode(0o600)
	if l.cfg.Open {
		mode = 0o666
	}
	err = os.Chmod(l.cfg.Path, mode)
	if err == nil {
		l.id, err = os.Lstat(l.cfg.Path)
	}
	if err != nil {
		ln.Close()
		return fmt.Errorf("cannot set the mode of the socket %s: %w", l.cfg.Path, plain(err))
	}
	l.ln = ln
	return nil
}

// Renew recreates the socket if it has been removed or replaced, and logs this. Existing connections stay open, and
// Accept returns connections to the new socket. If the listener is closed, Renew does nothing. Renew returns the same
// errors as Listen. If it fails, the listener and other programs' files are unchanged.
func (l *Listener) Renew(ctx context.Context) error {
	l.place.Lock()
	defer l.place.Unlock()
	if l.closed || l.stands() {
		return nil
	}
	old := l.ln
	if err := l.listen(ctx); err != nil {
		return err
	}
	old.Close() // closed only now, so that Accept continues with l.ln
	l.cfg.Log.Warn("the socket was removed or replaced; recreated it", "path", l.cfg.Path)
	return nil
}

// stands reports whether the path still refers to this listener's socket. While the listener is open, the socket's
// inode cannot be reused for another file.
func (l *Listener) stands() bool {
	fi, err := os.Lstat(l.cfg.Path)
	return err == nil && os.SameFile(fi, l.id)
}

// clear removes a stale socket, if there is one.
func clear(ctx context.Context, path string) error {
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && fi.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket: move it elsewhere", path)
	}
	c, err := Dial(ctx, path)
	switch {
	case err == nil:
		c.Close()
		return fmt.Errorf("another server is listening on the socket %s: stop that server, or choose another path", path)
	// For example, the call timed out, too many files are open, or the listen queue is full.
	case !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot check whether another server is listening on the socket %s: %w", path, plain(err))
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the stale socket %s: %w", path, plain(err))
	}
	return nil
}

// Dial connects to the server that is listening at path. If no server is listening, the error wraps fs.ErrNotExist or
// ECONNREFUSED. If this user may not connect, it wraps fs.ErrPermission.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	short, done, err := shorten(path)
	if err != nil {
		return nil, err
	}
	defer done()
	return (&net.Dialer{}).DialContext(ctx, "unix", short)
}

// plain returns err without the path, which may have been shortened.
func plain(err error) error {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// Accept waits for the next connection and returns it as a *Conn. It closes connections whose user cannot be
// identified, and other users' connections beyond MaxGuestConns.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		ln := l.listening()
		c, err := ln.Accept()
		if err != nil && ln != l.listening() {
			continue // Renew has recreated the socket
		}
		if err != nil {
			return nil, err
		}
		uid, err := Peer(c.(*net.UnixConn))
		if err != nil {
			l.cfg.Log.Warn("socket: refused a connection because its user is unknown", "error", err)
			c.Close()
			continue
		}
		if !l.enterPeer(uid) {
			c.Close()
			continue
		}
		if uid == 0 && l.self != 0 {
			l.cfg.Log.Info("socket: root connected")
		}
		return &Conn{Conn: c, UID: uid, from: l}, nil
	}
}

func (l *Listener) listening() net.Listener {
	l.place.Lock()
	defer l.place.Unlock()
	return l.ln
}

// Addr returns the socket's address.
func (l *Listener) Addr() net.Addr { return l.listening().Addr() }

func (l *Listener) enterPeer(uid int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut || uid != l.self && uid != 0 && l.conns[uid] >= MaxGuestConns {
		return false
	}
	l.conns[uid]++
	l.open++
	return true
}

func (l *Listener) leavePeer(uid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns[uid]--; l.conns[uid] == 0 {
		delete(l.conns, uid)
	}
	l.open--
	l.since = time.Now()
}

// Enter registers a client that is not connected to the socket, such as a browser, so that AwaitIdle waits for this
// client too. The caller must call leave exactly once, when the client disconnects. If AwaitIdle has already returned
// nil, ok is false.
func (l *Listener) Enter() (leave func(), ok bool) {
	if !l.enterPeer(l.self) {
		return nil, false
	}
	return func() { l.leavePeer(l.self) }, true
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.gone.Do(func() { c.from.leavePeer(c.UID) })
	return c.Conn.Close()
}

// AwaitIdle waits until no client has been connected for the duration d and the server is not busy. It then returns
// nil, and from then on Accept closes new connections. If ctx is done first, AwaitIdle returns ctx's error. The
// duration begins no earlier than the call, because clients that connected before the call may still be waiting for
// Accept.
func (l *Listener) AwaitIdle(ctx context.Context, d time.Duration) error {
	l.mu.Lock()
	l.since = time.Now()
	l.mu.Unlock()
	for {
		rest := l.rest(d)
		if rest <= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rest):
		}
	}
}

// rest returns how long AwaitIdle must wait before it calls rest again. If the result is 0 or less, the listener is
// idle, and Accept closes all later connections.
func (l *Listener) rest(d time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open > 0 || l.cfg.Busy != nil && l.cfg.Busy() {
		return d
	}
	rest := d - time.Since(l.since)
	l.shut = rest <= 0
	return rest
}

// Withdraw removes the socket, unless another socket has replaced it. No new clients can then connect, but Accept still
// returns the connections of clients that have already connected.
func (l *Listener) Withdraw() {
	l.place.Lock()
	defer l.place.Unlock()
	l.withdraw()
}

// withdraw is like Withdraw, but the caller must hold l.place.
func (l *Listener) withdraw() {
	if !l.closed && l.stands() {
		os.Remove(l.cfg.Path)
	}
}

// Close closes the listener, and removes the socket unless another socket has replaced it. Calling Close again has no
// effect.
func (l *Listener) Close() error {
	l.place.Lock()
	defer l.place.Unlock()
	if l.closed {
		return nil
	}
	l.withdraw()
	l.closed = true
	err := l.ln.Close()
	l.unlock()
	return err
}
