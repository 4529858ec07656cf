package stdio

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// untilUnread calls gone when nobody reads the output any more, if that can be known; it returns then or when ctx
// ends. A client that has died closes both ends, and what it waited for must not be taken out of a mailbox for nobody.
func (b *bridge) untilUnread(ctx context.Context, gone func()) {
	f, ok := b.cfg.Out.(*os.File)
	if !ok {
		return
	}
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		fds := []unix.PollFd{{Fd: int32(f.Fd())}}
		if n, err := unix.Poll(fds, 0); err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
			gone()
			return
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}
