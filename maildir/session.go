package maildir

import (
	"context"
	"time"
)

// goneLook is how often the store looks for clients that have gone without a word.
const goneLook = time.Minute

// endGone ends the sessions of clients that went without saying so, until ctx ends.
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
