package gitlog

import (
	"context"
	"time"
)

// longestStill limits how long Still waits for commits in progress before the repository is copied. During that time,
// the project's writer waits too.
const longestStill = 10 * time.Second

// KeepPacks implements history.Log.
func (l *Log) KeepPacks(ctx context.Context) (done func(), err error) { return await(ctx, l.packing) }

// Still implements history.Log.
func (l *Log) Still(ctx context.Context, fn func() error) error {
	ctx, cancel := context.WithTimeout(ctx, longestStill)
	defer cancel()
	if err := l.Flush(ctx); err != nil && ctx.Err() == nil {
		l.cfg.Log.Debug("copying the history without the newest operations; the journal contains them", "error", err)
	}
	return unavailable(l.exclusive(ctx, fn))
}
