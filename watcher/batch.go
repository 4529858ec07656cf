package watcher

import (
	"context"
	"time"
)

// Batch is a set of changes that are due together. It says where to look, not
// what happened: the callee reads what stands at each path now.
type Batch struct {
	// Paths are relative to Root, slash separated, unique and sorted, in the
	// bytes of the file system (no name is cleaned or checked). They are
	//   - files, links and other non-folders that were made or changed;
	//   - what is gone: a folder by its own path only, whatever was in it;
	//   - folders that came, or came back, each after all in it is watched.
	// So with every path the callee compares all that it knows below that path;
	// what it does not know below a folder is named in this batch or another.
	//
	// Why a folder that came: a folder "a" goes, and before the callee looks
	// another "a" is there, not watched yet. Its a/x seems to be the a/x of old;
	// if it is removed in that moment, no event and no listing tells.
	Paths []string

	// Scan means that events were lost or cannot come: the whole tree must be
	// compared. Paths may be empty then.
	Scan bool
}

// dispatch hands due batches to OnBatch until ctx ends. It sleeps until the
// earliest deadline, and where nothing waits until something does.
func (w *Watcher) dispatch(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil {
		batch, next := w.waiting.takeDue(time.Now())
		if batch.Scan || len(batch.Paths) > 0 {
			w.cfg.OnBatch(ctx, batch)
			w.waiting.reported()
			continue
		}
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
		case <-w.waiting.wake:
		case <-timer.C:
		}
	}
}
