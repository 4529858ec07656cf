package watcher

import "golang.org/x/sys/unix"

// written reports whether the regular file at rel below root is surely open for writing nowhere, so
// that who wrote it in place has ended: the kernel grants a read lease on no other. fsnotify does
// not tell of IN_CLOSE_WRITE (https://github.com/fsnotify/fsnotify/issues/519). Where leases are
// not granted (a file of somebody else, a network file system) it is false, and the quiet time
// decides. The file is opened but not read, no link on the way is followed, and the lease is given
// back at once: who opens the file meanwhile waits for microseconds.
func written(root, rel string) bool {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, rel, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK); err != nil {
		return false
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}
