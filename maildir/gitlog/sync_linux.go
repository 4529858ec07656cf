package gitlog

import (
	"os"
	"runtime"
	"time"

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

// stopwatch measures the processor time of the calling goroutine, which stays on its thread until
// done is called: neither the disk, nor a lock, nor other programs on a busy machine count.
func stopwatch() (done func() time.Duration) {
	runtime.LockOSThread()
	start := threadTime()
	return func() time.Duration {
		defer runtime.UnlockOSThread()
		return threadTime() - start
	}
}

func threadTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
