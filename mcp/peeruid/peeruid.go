// Package peeruid looks up the OS user at the other end of a TCP connection from this machine.
//
// On Linux, the package queries the kernel for this one connection (sock_diag, the interface that ss uses), so the cost
// does not depend on the number of sockets. On other systems, Check and Of return an error.
package peeruid

import (
	"fmt"
	"net"
	"net/netip"
	"os"
)

// Of returns the uid of the process that opened the other end of a TCP connection. It returns an error if the other end
// is not on this machine, or is no longer an established connection of a process. After a process has closed its end,
// the kernel reports uid 0 for it, so Of treats a closed end as unknown. Call Of once, right after accepting the
// connection and before accepting another one.
//
// A client may reset a connection before it is accepted. The server can still read what the client has sent, but
// another user can now take over the client's port, and establish a connection between the same two addresses. Of
// therefore also looks up the server's end of the connection. The end of the new connection has no inode before the
// connection is accepted, so Of returns an error.
func Of(c net.Conn) (uid int, err error) {
	client, err := addrPort(c.RemoteAddr())
	if err != nil {
		return 0, err
	}
	server, err := addrPort(c.LocalAddr())
	if err != nil {
		return 0, err
	}
	if uid, err = lookup(client, server); err != nil {
		return 0, fmt.Errorf("cannot look up the user of %s: %w", client, err)
	}
	if _, err = lookup(server, client); err != nil {
		return 0, fmt.Errorf("cannot look up the user of %s, because the connection has ended: %w", client, err)
	}
	return uid, nil
}

// addrPort returns the address and port of a TCP address. It converts an IPv4-mapped IPv6 address to IPv4 and drops
// the zone.
func addrPort(a net.Addr) (netip.AddrPort, error) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("%v is not a TCP address", a)
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port()), nil
}

// Check returns nil if Of works on this system, and otherwise an error with the reason. To test this, Check opens a
// TCP connection to itself.
func Check() error {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return fmt.Errorf("cannot test the user lookup: %w", err)
	}
	defer l.Close()
	c, err := net.DialTCP("tcp4", nil, l.Addr().(*net.TCPAddr))
	if err != nil {
		return fmt.Errorf("cannot test the user lookup: %w", err)
	}
	defer c.Close()
	accepted, err := l.Accept()
	if err != nil {
		return fmt.Errorf("cannot test the user lookup: %w", err)
	}
	defer accepted.Close()
	uid, err := Of(accepted)
	if err == nil && uid != os.Geteuid() {
		err = fmt.Errorf("the system reports that this process belongs to user %d, but it belongs to user %d", uid, os.Geteuid())
	}
	return err
}
