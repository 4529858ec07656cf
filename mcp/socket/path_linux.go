package socket

import (
	"os"
	"path/filepath"
	"strconv"
)

// maxPath is the length of the longest path that fits into sun_path together with its NUL.
const maxPath = 107

// shorten returns a path for the socket that fits into a socket address. The path is valid until done is
// called.
func shorten(path string) (short string, done func(), err error) {
	if len(path) <= maxPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + filepath.Base(path), func() { dir.Close() }, nil
}
