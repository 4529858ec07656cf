//go:build unix && !linux

package socket

import "fmt"

// maxPath is the length of the longest path that fits, together with its NUL, into sun_path on BSD systems.
const maxPath = 103

// shorten returns a path for the socket that fits into a socket address. The path is valid until done is
// called.
func shorten(path string) (short string, done func(), err error) {
	if len(path) > maxPath {
		return "", nil, fmt.Errorf("the socket %s cannot be used: its path has %d bytes, and this system allows %d. "+
			"Set MCP_MAIL_STORE to a folder with a shorter path", path, len(path), maxPath)
	}
	return path, func() {}, nil
}
