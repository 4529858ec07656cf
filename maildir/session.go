package maildir

import (
	"context"
	"time"
)

// goneLook is the interval between checks for clients that have exited without reporting it.
const goneLook = time.Minute

// endGone ends the sessions of clients that have exited without reporting it. It runs until ctx ends.
func (s *Store) endGone(ctx context.Context) {
	look := time.NewTicker(s.core.GoneLook)
	defer look.Stop()
	for {
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		for _, p := range s.Projects() {
			p.Sessions.EndGone(ctx)
		}
	}
}
