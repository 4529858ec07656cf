package peeruid

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Sizes in bytes of struct inet_diag_req_v2, of struct inet_diag_msg, and of a netlink message's header
// (linux/inet_diag.h, linux/netlink.h).
const (
	requestSize = 56
	answerSize  = 72
	headerSize  = unix.SizeofNlMsghdr
)

// established is the TCP state in which both ends can send data (TCP_ESTABLISHED).
const established = 1

// patience is the maximum time in seconds to wait for the kernel's response, which normally takes microseconds.
const patience = 1

// errUnknown means that no process on this machine has an established connection between the two addresses.
var errUnknown = errors.New("no process on this machine owns the other end of the connection")

// lookup returns the uid of the socket that is bound to client and connected to server.
func lookup(client, server netip.AddrPort) (uid int, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return 0, fmt.Errorf("cannot open sock_diag: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: patience}); err != nil {
		return 0, fmt.Errorf("cannot open sock_diag: %w", err)
	}
	if err := unix.Sendto(fd, request(client, server), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, fmt.Errorf("cannot query sock_diag: %w", err)
	}
	answer := make([]byte, 4096)
	n, from, err := unix.Recvfrom(fd, answer, 0)
	for errors.Is(err, unix.EINTR) { // the Go scheduler's signals interrupt the call, which is not restarted
		n, from, err = unix.Recvfrom(fd, answer, 0)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot query sock_diag: %w", err)
	}
	if kernel, ok := from.(*unix.SockaddrNetlink); !ok || kernel.Pid != 0 {
		return 0, errors.New("query sock_diag: the answer did not come from the kernel")
	}
	return read(answer[:n], client, server)
}

// request returns the netlink message that requests information about one connection from the kernel.
func request(client, server netip.AddrPort) []byte {
	b := make([]byte, headerSize+requestSize)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	body := b[headerSize:]
	body[0], body[1] = unix.AF_INET6, unix.IPPROTO_TCP
	if client.Addr().Is4() {
		body[0] = unix.AF_INET // also finds IPv6 sockets that are connected to an IPv4 address
	}
	binary.NativeEndian.PutUint32(body[4:], 1<<established)
	copy(body[8:], socketID(client, server))
	return b
}

// socketID returns a struct inet_diag_sockid that specifies neither an interface nor a cookie.
func socketID(client, server netip.AddrPort) []byte {
	b := make([]byte, 48)
	binary.BigEndian.PutUint16(b, client.Port())
	binary.BigEndian.PutUint16(b[2:], server.Port())
	copy(b[4:20], client.Addr().AsSlice())
	copy(b[20:36], server.Addr().AsSlice())
	binary.NativeEndian.PutUint64(b[40:], ^uint64(0)) // INET_DIAG_NOCOOKIE
	return b
}

// read returns the uid in the kernel's response. If no connection matches, the kernel may return a listening socket, or
// a socket that its process has closed. Therefore read checks the state and the inode.
func read(answer []byte, client, server netip.AddrPort) (uid int, err error) {
	if len(answer) < headerSize+4 {
		return 0, errors.New("query sock_diag: the answer is too short")
	}
	kind, body := binary.NativeEndian.Uint16(answer[4:]), answer[headerSize:]
	if kind == unix.NLMSG_ERROR {
		errno := unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
		if errno == unix.ENOENT {
			return 0, errUnknown
		}
		return 0, fmt.Errorf("cannot query sock_diag: %w", errno)
	}
	if kind != unix.SOCK_DIAG_BY_FAMILY || len(body) < answerSize {
		return 0, fmt.Errorf("query sock_diag: unexpected answer of type %d with %d bytes", kind, len(body))
	}
	state, inode := body[1], binary.NativeEndian.Uint32(body[68:])
	if state != established || inode == 0 || !matches(body[4:], client, server) {
		return 0, errUnknown
	}
	return int(binary.NativeEndian.Uint32(body[64:])), nil
}

// matches reports whether a struct inet_diag_sockid contains the ports of the two addresses.
func matches(id []byte, client, server netip.AddrPort) bool {
	return binary.BigEndian.Uint16(id) == client.Port() && binary.BigEndian.Uint16(id[2:]) == server.Port()
}
