package stdio

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// untilUnread calls gone once no process reads the output anymore, if the system can detect this. It returns after that
// call or when ctx is done. If a client dies while it is waiting for mail, its end of the output closes. The mail must
// then stay in the mailbox.
func (b *bridge) untilUnread(ctx context.Context, gone func()) {
	f, ok := b.cfg.Out.(*os.File)
	if !ok {
		return
	}
	r, w, err := os.Pipe() // closing w ends the wait below
	if err != nil {
		b.log.Warn("stdio: cannot determine whether the output is still being read", "error", err)
		return
	}
	defer r.Close()
	defer context.AfterFunc(ctx, func() { w.Close() })()
	for {
		fds := []unix.PollFd{{Fd: int32(f.Fd())}, {Fd: int32(r.Fd())}}
		_, err := unix.Poll(fds, -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || fds[1].Revents != 0:
			return
		case fds[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0:
			gone()
			return
		}
	}
}
