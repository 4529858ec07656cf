//go:build unix && !linux

package socket

import "fmt"

// maxPath is the maximum length of a path that fits in sun_path on BSD systems along with its terminating NUL.
const maxPath = 103

// shorten returns a path to the socket that fits in a socket address. The path remains valid until done is called.
func shorten(path string) (short string, done func(), err error) {
	if len(path) > maxPath {
		return "", nil, fmt.Errorf("the socket %s cannot be used: its path is %d bytes long, and this system allows %d. "+
			"Set MCP_MAIL_STORE to a folder with a shorter path", path, len(path), maxPath)
	}
	return path, func() {}, nil
}
