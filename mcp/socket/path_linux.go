package socket

import (
	"os"
	"path/filepath"
	"strconv"
)

// maxPath is the maximum length in bytes of a path in sun_path, not counting the terminating NUL.
const maxPath = 107

// shorten returns a path to the socket that fits in a socket address. The result is valid until done is called.
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
