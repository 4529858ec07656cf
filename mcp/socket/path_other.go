//go:build unix && !linux

package socket

import "fmt"

// maxPath is the maximum length in bytes of a path in sun_path on BSD systems, not counting the terminating NUL.
const maxPath = 103

// shorten returns a path to the socket that fits in a socket address. The result is valid until done is called.
func shorten(path string) (short string, done func(), err error) {
	if len(path) > maxPath {
		return "", nil, fmt.Errorf("the socket %s cannot be used: its path is %d bytes long, and this system allows %d. "+
			"Set MCP_MAIL_STORE or SOCKET to a shorter path", path, len(path), maxPath)
	}
	return path, func() {}, nil
}
