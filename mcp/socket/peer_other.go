//go:build unix && !linux && !darwin && !freebsd

package socket

import (
	"errors"
	"net"
)

// Peer always returns an error, because this system cannot identify the user. The listener therefore closes every
// connection.
func Peer(*net.UnixConn) (uid int, err error) {
	return 0, errors.New("this system cannot identify the user of a connection")
}
