package in

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Address is an address that a server listens on.
type Address struct {
	Network string // unix or tcp
	Addr    string // path or host:port
	LMTP    bool   // whether to speak LMTP instead of SMTP
}

// ParseListen parses a comma-separated list of addresses: lmtp+unix:PATH, lmtp://HOST:PORT, smtp://HOST:PORT. If an
// address is invalid, the error says what to write instead.
func ParseListen(list string) (all []Address, err error) {
	for one := range strings.SplitSeq(list, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		if path, ok := strings.CutPrefix(one, "lmtp+unix:"); ok && strings.HasPrefix(path, "/") {
			all = append(all, Address{"unix", path, true})
			continue
		}
		u, err := url.Parse(one)
		if err != nil || u.Port() == "" || u.Path != "" || u.User != nil || u.Scheme != "lmtp" && u.Scheme != "smtp" {
			return nil, fmt.Errorf("%q is not a valid address to listen on: use lmtp+unix:/PATH, "+
				"lmtp://127.0.0.1:2400 or smtp://:25", one)
		}
		if u.Scheme == "lmtp" && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback() {
			return nil, fmt.Errorf("%q can be reached from other machines, but LMTP is allowed only on this machine: "+
				"use lmtp://127.0.0.1:%s", one, u.Port())
		}
		all = append(all, Address{"tcp", u.Host, u.Scheme == "lmtp"})
	}
	return all, nil
}

// listen creates a listener. If a Unix socket exists but no server is listening on it, listen replaces the socket.
func (s *Server) listen(ctx context.Context, a Address) (net.Listener, error) {
	if a.Network == "unix" {
		if err := removeStale(a.Addr); err != nil {
			return nil, err
		}
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, a.Network, a.Addr)
	if err != nil {
		return nil, err
	}
	if a.Network == "unix" {
		if s.cfg.SocketGID != 0 {
			err = os.Chown(a.Addr, -1, s.cfg.SocketGID)
		}
		if err = errors.Join(err, os.Chmod(a.Addr, 0o660)); err != nil {
			l.Close()
			return nil, err
		}
	}
	return &limited{Listener: l, server: s, hosts: map[string]int{}}, nil
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is not a socket: remove it, or listen on another path", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return fmt.Errorf("another process is already listening on %s", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// limited is a listener that closes connections that exceed the limits.
type limited struct {
	net.Listener
	server *Server

	mu    sync.Mutex
	total int
	hosts map[string]int
}

// Accept waits for the next connection that is within the limits, and returns it.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host := hostOf(c.RemoteAddr())
		if l.enter(host) {
			conn := &strictConn{Conn: c, leave: sync.OnceFunc(func() { l.leave(host) }), first: time.Now().Add(firstTime)}
			conn.end = time.AfterFunc(sessionTime, func() { conn.Close() })
			return conn, nil
		}
		c.SetWriteDeadline(time.Now().Add(time.Second))
		fmt.Fprintf(c, "421 4.7.0 %s Too many connections, try again later\r\n", l.server.cfg.Host)
		c.Close()
	}
}

// hostOf returns the host under which a connection is counted, which is an IPv4 address or an IPv6 /64. Providers
// assign a whole /64 to each customer. For a Unix socket, hostOf returns "".
func hostOf(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return ""
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	network, err := ip.Prefix(64)
	if err != nil {
		return ip.String()
	}
	return network.String()
}

func (l *limited) enter(host string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= l.server.cfg.MaxConns || host != "" && l.hosts[host] >= l.server.cfg.MaxConnsPerHost {
		return false
	}
	l.total++
	l.hosts[host]++
	return true
}

func (l *limited) leave(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.hosts[host]--; l.hosts[host] == 0 {
		delete(l.hosts, host)
	}
}
