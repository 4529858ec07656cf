package gitlog

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncAll makes everything written so far to the file system of dir durable: one syncfs, which also
// reports write-back errors (docs/durability.md, "Why it is done this way"). The paths are for
// systems without it.
func syncAll(dir string, _ []string) error {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		if err := unix.Syncfs(int(d.Fd())); err != unix.EINTR {
			return err
		}
	}
}
