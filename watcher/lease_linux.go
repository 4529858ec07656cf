package watcher

import "golang.org/x/sys/unix"

// written reports whether no process has the regular file at rel below root open for writing. If so, a write in place
// has finished. written requests a read lease, which the kernel grants only if no process has the file open for
// writing. A lease is needed because fsnotify does not report IN_CLOSE_WRITE
// (https://github.com/fsnotify/fsnotify/issues/519). If the kernel refuses the lease (another user's file, a network
// file system), written returns false, and the path is reported after the quiet time. written opens the file but does
// not read it, and does not follow links in the path. It releases the lease immediately, so a process that opens the
// file during the lease is delayed only by microseconds.
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
