//go:build !linux

package peeruid

import (
	"errors"
	"net/netip"
)

// errUnsupported means that users cannot be looked up on this system.
var errUnsupported = errors.New("this system cannot report which user owns a TCP connection")

func lookup(_, _ netip.AddrPort) (uid int, err error) { return 0, errUnsupported }
