package tree

import "golang.org/x/sys/unix"

// Exchange atomically swaps two files or folders of the same file system. It returns errors from the system.
func Exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
