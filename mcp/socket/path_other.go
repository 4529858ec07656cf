//go:build unix && !linux

package socket

import "fmt"

// maxPath is what fits into sun_path of the BSDs with its NUL.
const maxPath = 103

// shorten gives a name for the socket that fits into its address; done ends its use.
func shorten(path string) (short string, done func(), err error) {
	if len(path) > maxPath {
		return "", nil, fmt.Errorf("the socket %s cannot be used: its path is %d bytes long and may have %d here. "+
			"Set MCP_MAIL_STORE to a folder with a shorter path", path, len(path), maxPath)
	}
	return path, func() {}, nil
}
